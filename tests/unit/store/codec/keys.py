"""One made-up key of each form, put together here so that no scanner takes them for real ones."""

import random
import string

_chance = random.Random(20261115)  # noqa: S311 a seed
_WORD = string.ascii_letters + string.digits


def some(count: int, letters: str = _WORD) -> str:
    """Random letters."""
    return "".join(_chance.choices(letters, k=count))


def samples() -> list[tuple[str, str]]:
    """Made-up keys, new ones at each call, at least one of each kind."""
    upper = string.ascii_uppercase + "234567"
    digits, hexes = string.digits, "0123456789abcdef"
    body = "\n".join(some(64, _WORD + "+/") for _ in range(6))
    return [
        ("anthropic-key", f"sk-ant-api03-{some(93)}AA"),
        ("openai-key", f"sk-proj-{some(60)}_{some(20)}-{some(40)}"),
        ("openai-key", f"sk-{some(20)}T3Bl" + f"bkFJ{some(20)}"),
        ("openrouter-key", f"sk-or-v1-{some(64, hexes)}"),
        ("groq-key", f"gsk_{some(52)}"),
        ("xai-key", f"xai-{some(80)}"),
        ("huggingface-token", f"hf_{some(34)}"),
        ("replicate-token", f"r8_{some(37)}"),
        ("aws-access-key", f"AKIA{some(16, upper)}"),
        ("aws-access-key", f"ASIA{some(16, upper)}"),
        ("google-api-key", f"AIza{some(35)}"),
        ("google-oauth-secret", f"GOCSPX-{some(28)}"),
        ("google-oauth-token", f"ya29.{some(60)}"),
        ("github-token", f"ghp_{some(36)}"),
        ("github-token", f"github_pat_{some(22)}_{some(59)}"),
        ("gitlab-token", f"glpat-{some(20)}"),
        ("npm-token", f"npm_{some(36)}"),
        ("pypi-token", f"pypi-AgE{some(120)}"),
        ("slack-token", f"xoxb-{some(12, digits)}-{some(12, digits)}-{some(24)}"),
        (
            "slack-webhook",
            f"hooks.slack.com/services/T{some(8, upper)}/B{some(8, upper)}/{some(24)}",
        ),
        ("stripe-key", f"sk_live_{some(24)}"),
        ("stripe-key", f"whsec_{some(32)}"),
        ("sendgrid-key", f"SG.{some(22)}.{some(43)}"),
        ("digitalocean-token", f"dop_v1_{some(64, hexes)}"),
        ("telegram-token", f"{some(9, '123456789')}:AA{some(33)}"),
        ("jwt", f"eyJ{some(33)}.eyJ{some(60)}.{some(43)}"),
        ("private-key", f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"),
    ]


SAMPLES = samples()
