"""A word with several acts, such as `runs list`: alone it means the first of them."""

from typing import Any

from typer.core import TyperGroup


class Noun(TyperGroup):
    """`holdfast runs --json` is `holdfast runs list --json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 typer has its own click
        """Put the first act where none is named."""
        named = args[:1] and args[0] in {*self.commands, *ctx.help_option_names}
        is_completing_here = ctx.resilient_parsing and not args
        # A word that is no option is a misspelt act: the group itself names the nearest one.
        is_word = bool(args) and not args[0].startswith("-")
        if not (named or is_completing_here or is_word):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ANN401 see above
        """The acts, and the options of the first."""
        first = next(iter(self.commands.values()))
        own = super().shell_complete(ctx, incomplete)
        known = {item.value for item in own}
        inner = first.shell_complete(ctx, incomplete)
        return [*own, *(item for item in inner if item.value not in known)]
