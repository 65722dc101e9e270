"""The first section: the verdict as a sentence, how long each limit held, and what to do."""

from drapps import profile
from drapps.report.charts import share_bar
from drapps.report.markup import bound_class, dot, section, table, titled
from drapps.report.text import count_text, escape, percent
from drapps.report.verdict import diagnose, headline, limits
from drapps.sched import LIMITS


def verdict(run):
    """Return the section."""
    bound, sentence = headline(run)
    items = "".join(_item(finding) for finding in diagnose(run))
    return section(sentence, f"{_limit_bar(run)}<ul>{items}</ul>{_remedies(run)}", f"verdict {bound_class(bound)}")


def _item(finding):
    share = f'<span class="tag">{percent(finding.share)} of the time</span>' if finding.share else ""
    name = f"<b>{dot(bound_class(finding.name))}{escape(finding.name)}</b>"
    return f"<li>{name} {share} {escape(finding.evidence)}.<p>{escape(finding.advice)}</p></li>"


def _remedies(run):
    """Return the findings of `drapps profile` for this trace."""
    facts = profile.facts_of_trace(run.trace)
    found = [f for f in profile.diagnose(facts) if f.gain > 1]
    rows = [(f.name, f"{f.gain:.2f} ×", count_text(f.gain * facts.rate), f.evidence, f.advice) for f in found]
    columns = ("cause", "#gain", "#samples/s", "why", "remedy")
    return titled("Expected gains of remedies, by drapps profile", table(columns, rows) if rows else "")


def _limit_bar(run):
    found = sorted(limits(run).items(), key=lambda item: -item[1].seconds)
    whole = sum(limit.seconds for _, limit in found)
    if not whole:
        return ""
    shares = [(bound_class(bound), bound, limit.seconds / whole) for bound, limit in found]
    legend = "".join(
        f"<dt>{dot(css)}{escape(bound)} {percent(share)}<dd>{escape(LIMITS.get(bound, ''))}" for css, bound,
        share in shares
    )
    return f'{share_bar(shares, "what limited the run, by time")}<dl class="glossary">{legend}</dl>'
