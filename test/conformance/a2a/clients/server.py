"""An agent of the Python SDK, which asks back at "2". Arguments: port, file of its tasks.

Its tasks outlive the process: they are written to the file after each turn.
"""

import asyncio
import json
import os
import sys

import uvicorn

from google.protobuf.json_format import MessageToDict, ParseDict
from starlette.applications import Starlette

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb

PORT, FILE = int(sys.argv[1]), sys.argv[2]
URL = f'http://127.0.0.1:{PORT}'


class KeptTasks(InMemoryTaskStore):
    """The store of the SDK, with a copy on disk."""

    async def save(self, task, context=None):
        await super().save(task, context)
        kept = json.load(open(FILE)) if os.path.exists(FILE) else {}
        kept[task.id] = MessageToDict(task)
        with open(f'{FILE}.new', 'w') as file:
            json.dump(kept, file)
        os.replace(f'{FILE}.new', FILE)

    async def get(self, task_id, context=None):
        found = await super().get(task_id, context)
        if found is None and os.path.exists(FILE):
            kept = json.load(open(FILE)).get(task_id)
            found = None if kept is None else ParseDict(kept, pb.Task())
        return found


class Speaker(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        task = context.current_task
        is_further = task is not None
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        said = json.dumps({'text': text, 'task': task.id, 'context': task.context_id, 'isFurther': is_further})
        if text == '2':
            await updater.requires_input(new_text_message('Which?', context_id=task.context_id, task_id=task.id))
            return
        await updater.add_artifact([pb.Part(text=said)], name='said')
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = pb.AgentCard(
    name='speaker',
    description='Talks.',
    version='1.0.0',
    capabilities=pb.AgentCapabilities(streaming=True),
    supported_interfaces=[
        pb.AgentInterface(url=f'{URL}/a2a', protocol_binding='JSONRPC', protocol_version='1.0')
    ],
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    skills=[pb.AgentSkill(id='count', name='Count', description='Talks.', tags=['count'])],
)
handler = DefaultRequestHandler(agent_executor=Speaker(), task_store=KeptTasks(), agent_card=card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, '/a2a')]


async def main():
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host='127.0.0.1', port=PORT, log_level='error'))
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.05)
    print(json.dumps({'ready': URL}), flush=True)
    await serving


asyncio.run(main())
