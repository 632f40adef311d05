import fs from 'node:fs'
import path from 'node:path'
import { type Message, type StreamResponse, type Task, TaskState, verifyAgentCardSignature } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import test, { type Assert } from 'brittle'
import { importJWK, type JWK } from 'jose'
import { ask, gatewayNode } from '../support/a2a.js'
import { grpcClient, grpcNode, grpcRequest } from '../support/grpc.js'
import { localMesh, untilAgent, untilTrue } from '../support/nodes.js'

/** A list without a filter. */
const LIST = {
  tenant: '',
  contextId: '',
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: '',
  pageSize: 5,
  statusTimestampAfter: '2020-01-01T00:00:00.000Z'
}

/** The events of a stream, each as its kind and its state or text. */
async function read(stream: AsyncIterable<StreamResponse>): Promise<string[]> {
  const seen: string[] = []
  for await (const { payload } of stream) {
    if (payload?.$case === 'artifactUpdate')
      seen.push(`artifact ${String(payload.value.artifact?.parts[0]?.content?.value)}`)
    else if (payload?.$case === 'task' || payload?.$case === 'statusUpdate')
      seen.push(`${payload.$case} ${TaskState[payload.value.status?.state ?? 0]}`)
  }
  return seen
}

async function useAll(t: Assert, client: Client, never: string): Promise<void> {
  const task = (await client.sendMessage(grpcRequest('hello'))) as Task
  t.alike(
    [task.status?.state, task.artifacts[0]?.parts[0]?.content?.value],
    [TaskState.TASK_STATE_COMPLETED, 'you said hello']
  )
  t.is((await client.getTask({ tenant: '', id: task.id, historyLength: 0 })).history.length, 0)
  const filter = { contextId: task.contextId, status: TaskState.TASK_STATE_COMPLETED, includeArtifacts: true }
  const { tasks, totalSize } = await client.listTasks({ ...LIST, ...filter })
  t.alike([tasks.map(({ id }) => id), tasks[0]?.artifacts.length, totalSize], [[task.id], 1, 1])
  t.alike(await read(client.sendMessageStream(grpcRequest({ chunks: ['one', 'two'] }))), [
    'task TASK_STATE_SUBMITTED',
    'statusUpdate TASK_STATE_WORKING',
    'artifact one',
    'artifact two',
    'statusUpdate TASK_STATE_COMPLETED'
  ])
  const asked = (await client.sendMessage(grpcRequest({ ask: 'Which one?' }))) as Task
  t.is(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
  const answered = (await client.sendMessage(grpcRequest('that one', { taskId: asked.id }))) as Task
  t.alike([answered.id, answered.status?.state], [asked.id, TaskState.TASK_STATE_COMPLETED])
  const running = (await client.sendMessage(grpcRequest({ until: never }, { wait: false }))) as Task
  const followed = read(client.resubscribeTask({ tenant: '', id: running.id }))
  t.is((await client.cancelTask({ tenant: '', id: running.id, metadata: undefined })).id, running.id)
  t.is((await followed).at(-1), 'statusUpdate TASK_STATE_CANCELED')
  await t.exception(client.cancelTask({ tenant: '', id: running.id, metadata: undefined }), /cancel/i)
}

test('the official client uses every method for tasks over gRPC, for an agent of the node and one a hop away', async (t) => {
  const mesh = await localMesh(t)
  const node = await grpcNode(mesh, 'a')
  const { code } = await node.node.api.call('invite.create', { trust: 'mine', tier: 0 })
  await useAll(t, await grpcClient(node, 'talk'), path.join(node.dir, 'never'))
  const other = await mesh.start('b', { join: code })
  await untilAgent(node.node, 'text@b')
  const place = '/agents/text@b/.well-known/agent-card.json'
  await untilTrue(async () => (await ask(node, place)).status === 200, 'its card is there')
  const client = await grpcClient(node, 'text@b')
  const counted = { ...grpcRequest({ text: 'one two' }, { skill: 'text.stats' }), tenant: 'text@b' }
  const answer = (await client.sendMessage(counted)) as Message
  t.is((answer.parts[0]?.content?.value as { words: number } | undefined)?.words, 2, 'an answer without a task')
  const again = grpcRequest({ text: 'one two three' }, { skill: 'text.stats' })
  const events = await read(client.sendMessageStream({ ...again, tenant: 'text@b' }))
  t.alike([events[0], events.at(-1)], ['task TASK_STATE_SUBMITTED', 'statusUpdate TASK_STATE_COMPLETED'])
  const { tasks } = await client.listTasks({ ...LIST, tenant: 'text@b' })
  t.is(tasks.length, 1)
  await other.stop()
})

test('settings above 1 MiB hold for messages over gRPC, and the bound of output holds for answers', async (t) => {
  const mesh = await localMesh(t)
  const home = await mesh.dir()
  fs.writeFileSync(
    path.join(home, 'config.yaml'),
    'tools: { maxPayloadBytes: 8388608 }\na2a: { grpc: 0, guardrails: { input: { maxLength: 8000000 } } }\n'
  )
  const node = await gatewayNode(mesh, 'a', { home })
  const [client, talk] = [await grpcClient(node, 'text'), await grpcClient(node, 'talk')]
  const text = 'word '.repeat(500_000)
  const counted = { ...grpcRequest({ text }, { skill: 'text.stats' }), tenant: 'text' }
  const answer = (await client.sendMessage(counted)) as Message
  t.is((answer.parts[0]?.content?.value as { words: number } | undefined)?.words, 500_000)
  const task = (await talk.sendMessage(grpcRequest(text))) as Task
  t.is(task.status?.state, TaskState.TASK_STATE_FAILED)
  t.ok(JSON.stringify(task.status).includes('maxLength'), JSON.stringify(task.status).slice(0, 300))
})

test('push configs and the extended card are those of the other bindings', async (t) => {
  const node = await grpcNode(await localMesh(t), 'a', { A2A_NODE_A2A_ALLOW_PRIVATE: '127.0.0.1' })
  const client = await grpcClient(node, 'talk')
  const running = (await client.sendMessage(
    grpcRequest({ until: path.join(node.dir, 'never') }, { wait: false })
  )) as Task
  const config = {
    tenant: '',
    id: 'one',
    taskId: running.id,
    url: 'http://127.0.0.1:9099/hook',
    token: 'secret',
    authentication: { scheme: 'Bearer', credentials: 'abc' }
  }
  const made = await client.createTaskPushNotificationConfig(config)
  t.alike([made.id, made.taskId, made.url, made.authentication?.scheme], ['one', running.id, config.url, 'Bearer'])
  const name = { tenant: '', taskId: running.id, id: 'one' }
  t.is((await client.getTaskPushNotificationConfig(name)).url, config.url)
  const list = { tenant: '', taskId: running.id, pageSize: 0, pageToken: '' }
  t.is((await client.listTaskPushNotificationConfig(list)).configs.length, 1)
  const overHttp = await ask(node, `/agents/talk/tasks/${running.id}/pushNotificationConfigs`)
  t.is((overHttp.body['configs'] as unknown[]).length, 1)
  await client.deleteTaskPushNotificationConfig(name)
  t.is((await client.listTaskPushNotificationConfig(list)).configs.length, 0)
  await client.cancelTask({ tenant: '', id: running.id, metadata: undefined })

  const keys = await (await fetch(`${node.url}/.well-known/jwks.json`)).json()
  const key = await importJWK((keys as { keys: JWK[] }).keys[0] ?? {}, 'EdDSA')
  const card = await client.getAgentCard(
    undefined,
    verifyAgentCardSignature(() => Promise.resolve(key as never))
  )
  const { body } = await ask(node, '/agents/talk/extendedAgentCard')
  t.alike([card.name, card.version, card.skills.map(({ id }) => id)], ['talk', '1.2.3', ['talk.say', 'talk.once']])
  t.alike(
    card.signatures.map(({ protected: head }) => head),
    (body['signatures'] as { protected: string }[]).map(({ protected: head }) => head)
  )
})

test('cards name gRPC with the agent as tenant only when it is served, and so do status and banner', async (t) => {
  const mesh = await localMesh(t)
  const node = await grpcNode(mesh, 'a')
  type Card = { supportedInterfaces: { protocolBinding: string }[]; additionalInterfaces?: { transport: string }[] }
  const grpcOf = async (place: string): Promise<unknown[]> =>
    ((await ask(node, place)).body as unknown as Card).supportedInterfaces.filter(
      (one) => one.protocolBinding === 'GRPC'
    )
  const one = { protocolBinding: 'GRPC', protocolVersion: '1.0', url: node.address }
  t.alike(await grpcOf('/agents/talk/.well-known/agent-card.json'), [{ ...one, tenant: 'talk' }])
  const { body } = await ask(node, '/agents/talk/.well-known/agent-card.json')
  t.absent(
    (body as unknown as Card).additionalInterfaces?.some(({ transport }) => transport === 'GRPC'),
    'gRPC of 0.3 is not served'
  )
  t.is((await node.node.json<{ grpc: string }>(['status'])).grpc, node.address)
  t.ok((await node.node.cli(['status'])).stdout.includes(`grpc`), 'status names it')
  const shown = await node.node.json<{ a2a: { grpc: string } }>(['config', 'show'])
  t.ok(JSON.stringify(shown).includes('grpc'))
  const taken = node.address.split(':')[1] ?? ''
  const failed = mesh.start('c', { env: { A2A_NODE_A2A_GRPC: taken } })
  await t.exception(failed, new RegExp(`port ${taken} of 127.0.0.1 is in use by another program`))
})

test('a token that is revoked ends its streams over gRPC', async (t) => {
  const node = await grpcNode(await localMesh(t), 'a')
  const client = await grpcClient(node, 'talk')
  const until = path.join(node.dir, 'never')
  const running = (await client.sendMessage(grpcRequest({ until }, { wait: false }))) as Task
  let events = 0
  const stream = (async () => {
    for await (const event of client.resubscribeTask({ tenant: '', id: running.id }))
      events += Object.keys(event).length
  })()
  const ended = t.exception(stream, /the token has ended/)
  await untilTrue(async () => Promise.resolve(events > 0), 'the stream has begun')
  const { tokens } = await node.node.api.call('token.list', {})
  await node.node.api.call('token.revoke', { id: tokens[0]?.id ?? '' })
  await ended
})
