"""What is said of the sections of a state: which may be missing, and which are after a restore."""

import msgspec


class Section(msgspec.Struct, frozen=True, array_like=True):
    """What is declared of a section: it is an attached object's; a restart may go on without it."""

    is_attached: bool = False
    is_optional: bool = False


class Declared(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """What the program says of its sections, all of them; a section not named is essential."""

    sections: dict[str, Section]
