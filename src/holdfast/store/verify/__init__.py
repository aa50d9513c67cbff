"""Every byte of a store against its hashes."""

from holdfast.store.verify.walk import Finding, Progress, Report, unreadable, verify

__all__ = ["Finding", "Progress", "Report", "unreadable", "verify"]
