"""The socket that tells an organization's pages what to fetch again."""

import asyncio

from console.accounts import access
from console.live import topics
from console.live.consumers import RECHECK_SECONDS, LiveConsumer
from console.live.listener import listener
from console.live.threads import in_thread


class OrganizationConsumer(LiveConsumer):
    """Says which of the organization's lists changed; the page fetches them."""

    LISTS = ("jobs", "runners", "specs", "identities")

    def authorize(self) -> None:
        self.organization = access.organization_to_view(self.user, self.scope["url_route"]["kwargs"]["slug"])

    async def stream(self) -> None:
        names = {topics.organization(self.organization.pk, name): name for name in self.LISTS}
        loop = asyncio.get_running_loop()
        checked_at = loop.time()
        async with listener().subscribe(names) as subscription:
            while True:
                changed = await subscription.wait(seconds=RECHECK_SECONDS)
                if loop.time() - checked_at > RECHECK_SECONDS:
                    await in_thread(self.authorize_again)
                    checked_at = loop.time()
                if changed:
                    await self.send(text_data=_changed_frame(sorted(names[topic] for topic in changed)))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data and '"ping"' in text_data:
            await self.send(text_data='{"type":"pong"}')


def _changed_frame(lists: list[str]) -> str:
    return '{"type":"changed","topics":[' + ",".join(f'"{name}"' for name in lists) + "]}"
