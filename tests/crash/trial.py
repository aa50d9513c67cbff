"""One run, killed and continued until it is done; then judged by what the outside saw."""

import collections
import contextlib
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import msgspec

import holdfast
from holdfast.testing.kill import Failpoint, Syscall, attach
from tests.crash.agents import RUN
from tests.crash.nursery import FINISHED, IN_DOUBT, STORE_ERROR, Order
from tests.crash.outside import Line, Outside

ROOT = Path(__file__).resolve().parents[2]
LIVES_MAX = 20
Death = Failpoint | Syscall
