"""From the place of a key as people write it, such as `file:PATH`, to its provider."""

from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import KeyUnusable
from holdfast.store.keys import local, prompt
from holdfast.store.keys.passphrase import Passphrase
from holdfast.store.keys.vault import VaultKey
from holdfast.store.seal.provider import KeyProvider

PASSPHRASE = "HOLDFAST_PASSPHRASE"  # noqa: S105 the name of a variable
TOKEN = "VAULT_TOKEN"  # noqa: S105 the name of a variable
FORMS = "file:PATH, env:NAME, passphrase, cmd:COMMAND or vault:https://HOST/MOUNT/NAME"


def provider_of(
    spec: str,
    environ: Mapping[str, str],
    variable: str = PASSPHRASE,
    question: str = "passphrase of the store",
) -> KeyProvider:
    """The provider that `spec` names; `KeyUnusable` says why there is none.

    A passphrase stands in `variable`, or is the answer of a person to `question`.
    """
    kind, _, rest = spec.partition(":")
    match kind:
        case "file" if rest:
            return local.from_file(Path(rest).expanduser())
        case "env" if rest:
            return local.from_variable(rest, environ)
        case "cmd" if rest:
            return local.from_command(rest)
        case "vault" if rest:
            return VaultKey(rest, environ.get(TOKEN, ""))
        case "passphrase" if not rest:
            if environ.get(variable):
                return Passphrase(environ[variable])
            asked = prompt.typed(question)
            if asked is None:
                why = f"${variable} is not set, and there is no terminal to ask on"
                raise KeyUnusable(spec, why)
            return asked
        case _:
            # Not shown whole: it may be the key itself, given in the wrong place.
            raise KeyUnusable(f"{spec[:4]}…", f"a key is written as {FORMS}")
