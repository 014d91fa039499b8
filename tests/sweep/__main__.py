"""`python -m tests.sweep [SERVER ...]`: asks every server directly and through one gateway, and prints a table."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.processes import gateway
from tests.sweep.catalog import Server, servers
from tests.sweep.compare import Verdict, compare, strangers
from tests.sweep.direct import NoAnswerError, said_by
from tests.sweep.killing import kill_all, left_of, started_by
from tests.sweep.offline import go_offline
from tests.sweep.rules import UnexpectedError
from tests.sweep.through import Through

PAGE_SIZE = 40


def main() -> int:
    """Run the sweep; 1 if there was any difference."""
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SERVER", help="a name in servers.yaml; all of them by default")
    parser.add_argument("--online", action="store_true", help="leave the network on")
    arguments = parser.parse_args()
    network = "with the network" if arguments.online or not go_offline() else "without network access"
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        verdicts = [_asked(server) for server in servers(arguments.names, Path(folder).resolve())]
        faults = _compared([verdict for verdict in verdicts if verdict.said is not None])
    print(_table(verdicts))
    for verdict in verdicts:
        faults += [f"{verdict.server.name}: {line}" for line in verdict.differences]
    print("\n".join(faults))
    compared = sum(verdict.compared for verdict in verdicts)
    print(f"{len(verdicts)} servers {network}: {compared} comparisons, {len(faults)} differences")
    return 1 if faults else 0


def _asked(server: Server) -> Verdict:
    verdict = Verdict(server)
    server.prepare()
    try:
        verdict.said = said_by(server)
    except (NoAnswerError, KeyError, OSError) as error:
        verdict.differences.append(f"cannot be asked: {error}")
    print(f"  {server.name}: {verdict.said.era if verdict.said else 'cannot be asked'}", file=sys.stderr, flush=True)
    return verdict


def _compared(verdicts: list[Verdict]) -> list[str]:
    for verdict in verdicts:
        verdict.server.prepare()
    upstreams = {verdict.server.name: verdict.server.upstream for verdict in verdicts}
    with (
        gateway(upstreams, prefix="always", page_size=PAGE_SIZE, list_timeout="120s") as process,
        Through(process.url) as client,
    ):
        try:
            client.read_lists()
        except UnexpectedError as error:
            return [f"the merged lists: {error}", process.log()]
        for verdict in verdicts:
            compare(verdict, client)
        print(f"  {client.pages} pages of merged lists", file=sys.stderr)
        faults = strangers(verdicts, client) + kill_all(process, client)
        processes = started_by(process)
    return faults + left_of(processes)


def _table(verdicts: list[Verdict]) -> str:
    rows = ["| server | by | SDK | speaks | tools, prompts, resources, templates | compared | differences |"]
    rows.append("|---|---|---|---|---|---|---|")
    for verdict in verdicts:
        entry, said = verdict.server.entry, verdict.said
        counts = ", ".join(str(len(entries or [])) for entries in said.lists.values()) if said else "-"
        speaks = said.version if said else "-"
        cells = (
            entry["package"],
            entry["by"],
            entry["sdk"],
            speaks,
            counts,
            verdict.compared,
            len(verdict.differences),
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
