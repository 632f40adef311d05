"""Checks of the Python SDK as a client. Arguments: card URL's directory, binding. Environment: A2A_TOKEN, A2A_HOOK.

Prints one JSON line for each check: {"check", "ok", "why"}.
"""

import asyncio
import json
import os
import sys
import uuid

import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

AT, BINDING = sys.argv[1], sys.argv[2]
HEADERS = {'authorization': f'Bearer {os.environ["A2A_TOKEN"]}', 'a2a-version': '1.0'}


def request(text, task='', **configuration):
    message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, task_id=task, parts=[pb.Part(text=text)])
    return pb.SendMessageRequest(message=message, configuration=pb.SendMessageConfiguration(**configuration))


async def events(client, sent):
    return [event async for event in client.send_message(sent)]


async def task_of(client, text, task='', **configuration):
    return (await events(client, request(text, task, **configuration)))[-1].task


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f'{found!r} is not {wanted!r}')


async def fails(call, kind):
    try:
        await call
    except kind:
        return
    raise AssertionError(f'no {kind.__name__}')


async def main():
    http = httpx.AsyncClient(headers=HEADERS, timeout=15)
    card = await A2ACardResolver(http, AT).get_agent_card()

    def make(streaming):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=[BINDING],
            use_client_preference=True,
        )
        return ClientFactory(config).create(card)

    plain, streams = make(False), make(True)
    done = None

    async def check_card():
        same([skill.id for skill in card.skills], ['acts.do'])
        extended = await plain.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
        same(extended.name, card.name)

    async def check_send():
        nonlocal done
        done = await task_of(plain, 'hello')
        same(done.status.state, pb.TASK_STATE_COMPLETED)
        same(done.artifacts[0].parts[0].text, 'you said hello')

    async def check_stream():
        seen = await events(streams, request('chunks of words'))
        texts = [event.artifact_update.artifact.parts[0].text for event in seen if event.HasField('artifact_update')]
        same(texts, ['one ', 'two ', 'three'])
        same(seen[-1].status_update.status.state, pb.TASK_STATE_COMPLETED)

    async def check_get():
        same((await plain.get_task(pb.GetTaskRequest(id=done.id))).status.state, pb.TASK_STATE_COMPLETED)

    async def check_cancel():
        begun = await task_of(plain, 'hold on', return_immediately=True)
        canceled = await plain.cancel_task(pb.CancelTaskRequest(id=begun.id))
        same(canceled.status.state, pb.TASK_STATE_CANCELED)

    async def check_list():
        listed = await plain.list_tasks(pb.ListTasksRequest(context_id=done.context_id))
        same([task.id for task in listed.tasks], [done.id])

    async def check_turns():
        asked = await task_of(plain, 'ask me')
        same(asked.status.state, pb.TASK_STATE_INPUT_REQUIRED)
        again = await task_of(plain, 'more of it', asked.id)
        same((again.id, again.status.state), (asked.id, pb.TASK_STATE_INPUT_REQUIRED))
        last = await task_of(plain, 'finish', asked.id)
        same((last.id, last.status.state), (asked.id, pb.TASK_STATE_COMPLETED))

    async def check_push():
        config = pb.TaskPushNotificationConfig(task_id=done.id, id='mine', url=os.environ['A2A_HOOK'])
        same((await plain.create_task_push_notification_config(config)).url, config.url)
        named = pb.GetTaskPushNotificationConfigRequest(task_id=done.id, id='mine')
        same((await plain.get_task_push_notification_config(named)).url, config.url)
        listing = pb.ListTaskPushNotificationConfigsRequest(task_id=done.id)
        same([one.id for one in (await plain.list_task_push_notification_configs(listing)).configs], ['mine'])
        gone = pb.DeleteTaskPushNotificationConfigRequest(task_id=done.id, id='mine')
        await plain.delete_task_push_notification_config(gone)
        same(len((await plain.list_task_push_notification_configs(listing)).configs), 0)

    async def check_errors():
        await fails(plain.get_task(pb.GetTaskRequest(id='task_none')), TaskNotFoundError)
        await fails(plain.cancel_task(pb.CancelTaskRequest(id=done.id)), TaskNotCancelableError)

    checks = [check_card, check_send, check_stream, check_get, check_cancel, check_list, check_turns, check_push]
    for check in [*checks, check_errors]:
        name = check.__name__.removeprefix('check_')
        try:
            await check()
            print(json.dumps({'check': name, 'ok': True}), flush=True)
        except Exception as error:
            print(json.dumps({'check': name, 'ok': False, 'why': f'{type(error).__name__}: {error}'[:400]}), flush=True)
    await http.aclose()


asyncio.run(main())
