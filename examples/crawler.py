"""An agent with threads: `run.wrap` carries the run into them, so that nothing goes unrecorded.

Play it with `python examples/crawler.py`.
"""

from concurrent.futures import ThreadPoolExecutor

import holdfast

LINKS = {
    "index": ["about", "shop"],
    "about": ["team"],
    "shop": ["kelp", "rock"],
    "team": [],
    "kelp": ["index"],
    "rock": [],
}


@holdfast.step
def fetch(page: str) -> list[str]:
    """Read a page and give its links."""
    print("fetched", page)
    return LINKS[page]


@holdfast.effect(idempotent=True)  # the index takes the same page twice without harm
def put_into_index(page: str, *, idempotency_key: str = "") -> None:
    """Tell a search index about a page; the key lets it tell a repeat from a second page."""
    print("indexed", page, f"under {len(idempotency_key)} characters")


@holdfast.agent
def crawler(run: holdfast.Run, start: str) -> list[str]:
    """Follow links, a level a turn, four pages at a time."""
    seen = run.state.setdefault("seen", [])
    level = run.state.setdefault("level", [start])
    with ThreadPoolExecutor(max_workers=4) as pool:
        for _ in run.turns():
            links = pool.map(run.wrap(fetch), level)
            found = [page for pages in links for page in pages]
            for page in level:
                put_into_index(page)
            seen.extend(level)
            level[:] = dict.fromkeys(page for page in found if page not in seen)
            if not level:
                break
    return sorted(seen)


if __name__ == "__main__":
    with holdfast.open() as store:
        print(*store.run(crawler, "index", id="crawl-1"))
