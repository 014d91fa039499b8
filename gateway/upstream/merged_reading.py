"""`resources/read` over several upstreams: where the resource is listed, else wherever it may be.

A server need not list what it has, so one that is likely to have a resource is asked first, then each of the others in
the order of the file: reading changes nothing.
"""

from collections.abc import Mapping

from gateway.core.merged_replies import has_resource, may_be_elsewhere
from gateway.core.outcome import Outcome
from gateway.core.unknown import unknown_target
from gateway.errors import ProtocolError, UpstreamError, to_reply
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Upstream
from gateway.upstream.merged_directory import Directory
from gateway.upstream.merged_listings import Inquiry


class MergedReading:
    """Reads resources.

    Args:
        directory: knows whose a resource is.
        upstreams: by name.
    """

    def __init__(self, directory: Directory, upstreams: Mapping[str, Upstream]) -> None:
        self._directory = directory
        self._upstreams = upstreams

    async def serve(self, inquiry: Inquiry, client: ClientStream) -> Outcome:
        """Read a resource.

        Raises:
            ProtocolError: nobody has it.
            UpstreamError: the upstream that has it, or is likely to, failed.
        """
        uri = inquiry.request.params["uri"]
        holders = await self._directory.holders_of(uri, inquiry)
        if holders.listed is not None:
            return await self._upstreams[holders.listed].serve(inquiry.request, inquiry.caller, client)
        refusals: list[Outcome] = []
        for name in (*holders.likely, *holders.others):
            is_likely = name in holders.likely
            outcome = await self._try(name, inquiry, client, is_likely=is_likely)
            if not may_be_elsewhere(outcome, is_likely=is_likely):
                if has_resource(outcome):
                    self._directory.note_hint(uri, name, inquiry)
                return outcome
            refusals.append(outcome)
        return self._not_found(inquiry, refusals, list(holders.failures.values()))

    async def _try(self, name: str, inquiry: Inquiry, client: ClientStream, *, is_likely: bool) -> Outcome:
        try:
            return await self._upstreams[name].serve(inquiry.request, inquiry.caller, client)
        except UpstreamError as error:
            if is_likely:
                raise
            return Outcome.of_error(to_reply(error))
        except ProtocolError as error:
            return Outcome.of_error(to_reply(error))

    def _not_found(self, inquiry: Inquiry, refusals: list[Outcome], failures: list[Outcome]) -> Outcome:
        """What there is to say if none of those who were asked has the resource."""
        empty = [outcome for outcome in refusals if "result" in outcome.body]
        if empty:
            return empty[0]
        if inquiry.request.request_state is not None and refusals:
            return refusals[-1]  # the round is over, wherever it was
        if failures:
            return failures[0]  # one that could not be asked may have it
        raise unknown_target(inquiry.request.method, inquiry.request.params["uri"])
