"""Tables and statements of format 1, the same words for every SQL database."""

FORMAT = 1
"""The major version of the stored format; a store with a higher one is refused."""

TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "run": (
        "CREATE TABLE run (no INTEGER PRIMARY KEY, kid BLOB NOT NULL UNIQUE, "
        "epoch INTEGER NOT NULL, head INTEGER NOT NULL, mac BLOB NOT NULL, body BLOB NOT NULL)"
    ),
    "branch": (
        "CREATE TABLE branch (no INTEGER PRIMARY KEY, run INTEGER NOT NULL, "
        "parent INTEGER NOT NULL, at INTEGER NOT NULL, mac BLOB NOT NULL, body BLOB NOT NULL)"
    ),
    "branch_run": "CREATE INDEX branch_run ON branch (run)",
    "j": "CREATE TABLE j (id INTEGER PRIMARY KEY, mac BLOB NOT NULL, body BLOB NOT NULL)",
    "pack": (
        "CREATE TABLE pack (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, body BLOB NOT NULL)"
    ),
    "effect": (
        "CREATE TABLE effect (run INTEGER NOT NULL, intent BLOB NOT NULL, id INTEGER NOT NULL, "
        "PRIMARY KEY (run, intent, id)) WITHOUT ROWID"
    ),
}
"""Name of each table or index → its exact definition; a store with any other is refused."""

VALUES = "values"
"""The *incompat* feature of a store whose packs may hold values beside their rows."""
LEAVES = "leaves"
"""The *incompat* feature of a store whose saves may name leaves that stand elsewhere."""
PATCHES = "patches"
"""The *incompat* feature of a store whose large values may be patches on others."""
TAIL = "tail"
"""The *incompat* feature of a store whose newest rows may stand in a file beside the database."""
SEALED = "sealed"
"""The *incompat* feature of a store that is encrypted."""
SEALED_TABLES = {"key": "CREATE TABLE key (no INTEGER PRIMARY KEY, body BLOB NOT NULL)"}
"""What such a store has besides: wrapped keys, the store's own as number 0."""

APPEND = (
    "INSERT INTO j SELECT ?, ?, ? WHERE (SELECT epoch FROM run WHERE no=?)=? "
    "AND (EXISTS (SELECT 1 FROM j WHERE id=?) OR EXISTS (SELECT 1 FROM pack WHERE id=?)) "
    "AND NOT EXISTS (SELECT 1 FROM pack WHERE id BETWEEN ? AND ?)"
)
"""Fenced by the epoch, and only behind the newest row of the branch, loose or packed."""
RUN_INSERT = "INSERT INTO run (no, kid, epoch, head, mac, body) VALUES (?,?,?,?,?,?)"
RUN_UPDATE = "UPDATE run SET epoch=?, head=?, mac=?, body=? WHERE no=? AND epoch=?"
BRANCH_INSERT = "INSERT INTO branch (no, run, parent, at, mac, body) VALUES (?,?,?,?,?,?)"
EFFECT_INSERT = "INSERT OR IGNORE INTO effect (run, intent, id) VALUES (?,?,?)"

RUN_BY_KID = "SELECT no, kid, epoch, head, mac, body FROM run WHERE kid=?"
RUNS_BELOW = "SELECT no, kid, epoch, head, mac, body FROM run WHERE no < ? ORDER BY no DESC LIMIT ?"
BRANCH_BY_NO = "SELECT no, run, parent, at, mac, body FROM branch WHERE no=?"
BRANCHES_OF_RUN = (
    "SELECT own.no, own.run, own.parent, own.at, own.mac, own.body FROM branch AS filed "
    "LEFT JOIN branch AS own NOT INDEXED ON own.no=filed.no WHERE filed.run=? ORDER BY filed.no"
)
"""What the index names, as the table has it: a damaged entry names another branch, or none."""
