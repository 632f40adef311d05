import { TaskState, type Task } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import type { Task as OldTask } from 'a2a03'
import type * as old from 'a2a03/client'
import test, { type Assert } from 'brittle'
import { sdkClient, oldSdkClient, oldRequest, request } from '../support/a2a/sdk-clients.js'
import { type GatewayNode, gatewayNode } from '../support/a2a.js'
import { localMesh, untilAgent } from '../support/nodes.js'

/** The client of 1.0 for an agent of a node. */
const clientOf = ({ url, token }: GatewayNode, agent: string, transport: 'JSONRPC' | 'HTTP+JSON'): Promise<Client> =>
  sdkClient({ url: `${url}/agents/${agent}`, token }, transport)
/** The client of 0.3. */
const oldClientOf = (
  { url, token }: GatewayNode,
  agent: string,
  transport: 'JSONRPC' | 'HTTP+JSON'
): Promise<old.Client> => oldSdkClient({ url: `${url}/agents/${agent}`, token }, transport)

async function useOne(t: Assert, client: Client): Promise<void> {
  t.is(client.protocolVersion, '1.0')
  const done = (await client.sendMessage(request('hello'))) as Task
  t.is(done.status?.state, TaskState.TASK_STATE_COMPLETED)
  t.alike(done.artifacts[0]?.parts[0]?.content, { $case: 'text', value: 'you said hello' })
  const kinds: string[] = []
  for await (const { payload } of client.sendMessageStream(request('{"chunks":["a","b"]}')))
    kinds.push(payload?.$case ?? '')
  t.is(kinds[0], 'task')
  t.is(kinds.filter((kind) => kind === 'artifactUpdate').length, 2)
  const asked = (await client.sendMessage(request('{"ask":"Which?"}'))) as Task
  t.is(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
  const answered = (await client.sendMessage(request('this', asked.id))) as Task
  t.alike([answered.id, answered.status?.state], [asked.id, TaskState.TASK_STATE_COMPLETED])
  t.is((await client.getTask({ tenant: '', id: done.id, historyLength: 0 })).history.length, 0)
  const listing = {
    tenant: '',
    contextId: done.contextId,
    status: 0,
    pageToken: '',
    pageSize: 10,
    statusTimestampAfter: undefined
  }
  t.is((await client.listTasks(listing)).totalSize, 1)
  await rejects(t, client.cancelTask({ tenant: '', id: done.id, metadata: undefined }), 'TaskNotCancelableError')
  await rejects(t, client.getTask({ tenant: '', id: 'task_none' }), 'TaskNotFoundError')
  const card = await client.getAgentCard()
  t.ok(card.skills.some(({ id }) => id === 'talk.say'))
}

async function useOld(t: Assert, client: old.Client): Promise<void> {
  const done = (await client.sendMessage(oldRequest('hello'))) as OldTask
  t.alike([done.status.state, done.artifacts?.[0]?.parts[0]], ['completed', { kind: 'text', text: 'you said hello' }])
  const kinds: string[] = []
  for await (const { kind } of client.sendMessageStream(oldRequest('{"chunks":["a","b"]}'))) kinds.push(kind)
  t.is(kinds[0], 'task')
  t.is(kinds.filter((kind) => kind === 'artifact-update').length, 2)
  const asked = (await client.sendMessage(oldRequest('{"ask":"Which?"}'))) as OldTask
  t.is(asked.status.state, 'input-required')
  const answered = (await client.sendMessage(oldRequest('this', asked.id))) as OldTask
  t.alike([answered.id, answered.status.state], [asked.id, 'completed'])
  t.is((await client.getTask({ id: done.id })).id, done.id)
  const begun = (await client.sendMessage({
    ...oldRequest('{"until":"/nowhere"}'),
    configuration: { blocking: false }
  })) as OldTask
  t.is((await client.cancelTask({ id: begun.id })).status.state, 'canceled', 'it was not waited for')
  await rejects(t, client.cancelTask({ id: done.id }), 'TaskNotCancelableError')
  await rejects(t, client.getTask({ id: 'task_none' }), 'TaskNotFoundError')
}

async function rejects(t: Assert, call: Promise<unknown>, name: string): Promise<void> {
  await call.then(
    () => t.fail(`no ${name}`),
    (error: Error) => t.is(error.name === 'Error' ? error.constructor.name : error.name, name)
  )
}

test('the official clients of both versions use an agent, by JSON-RPC and by REST', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  for (const transport of ['JSONRPC', 'HTTP+JSON'] as const) {
    await useOne(t, await clientOf(node, 'talk', transport))
    await useOld(t, await oldClientOf(node, 'talk', transport))
  }
})

test('the official clients of both versions use an agent that is a hop away', async (t) => {
  const mesh = await localMesh(t)
  const far = await gatewayNode(mesh, 'far')
  const { code } = await far.node.api.call('invite.create', { trust: 'mine' })
  const near = await mesh.start('near', { join: code, args: ['--http', '0'] })
  await untilAgent(near, 'talk@far')
  const { token } = await near.json<{ token: string }>(['a2a', 'token', 'create'])
  const here: GatewayNode = { node: near, url: near.info.http ?? '', token, dir: far.dir }
  await useOne(t, await clientOf(here, 'talk@far', 'JSONRPC'))
  await useOld(t, await oldClientOf(here, 'talk@far', 'JSONRPC'))
})

const HOOK = 'https://hooks.example.com/a?b=c'

async function pushOne(t: Assert, client: Client): Promise<void> {
  const { id: taskId } = (await client.sendMessage(request('hello'))) as Task
  const authentication = { scheme: 'Bearer', credentials: 'secret' }
  const config = { tenant: '', taskId, id: 'mine', url: HOOK, token: 'tok', authentication }
  const told = { ...config, authentication: { ...authentication, credentials: '' } }
  t.alike(await client.createTaskPushNotificationConfig(config), told, 'credentials are never returned again')
  const named = await client.createTaskPushNotificationConfig({
    ...config,
    id: '',
    token: '',
    authentication: undefined
  })
  t.ok(named.id !== '' && named.url === HOOK && named.authentication === undefined)
  t.alike(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' }), told)
  const listed = async (): Promise<string[]> =>
    (await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })).configs
      .map(({ id }) => id)
      .sort()
  t.alike(await listed(), ['mine', named.id].sort())
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' })
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' })
  t.alike(await listed(), [named.id])
  await rejects(t, client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' }), 'TaskNotFoundError')
  await rejects(t, client.createTaskPushNotificationConfig({ ...config, taskId: 'task_none' }), 'TaskNotFoundError')
  const inside = client.createTaskPushNotificationConfig({ ...config, url: 'http://169.254.169.254/' })
  await inside.then(
    () => t.fail('it leads inside'),
    (error: Error) => t.ok(/not an address of a host|linkLocal/.test(error.message), error.message)
  )
}

/** Without what one of the wires leaves out, and the other one sends as an empty text. */
function bareOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, one: unknown) => (one === '' ? undefined : one)))
}

async function pushOld(t: Assert, client: old.Client): Promise<void> {
  const { id } = (await client.sendMessage(oldRequest('hello'))) as OldTask
  const mine = { id: 'mine', url: HOOK, token: 'tok', authentication: { schemes: ['Bearer'], credentials: 'secret' } }
  const config = { taskId: id, pushNotificationConfig: mine }
  const told = { taskId: id, pushNotificationConfig: { ...mine, authentication: { schemes: ['Bearer'] } } }
  const name = { id, pushNotificationConfigId: 'mine' }
  t.alike(
    bareOf(await client.setTaskPushNotificationConfig(config)),
    bareOf(told),
    'credentials are never returned again'
  )
  const bare = await client.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig: { url: HOOK } })
  t.alike(
    [bare.pushNotificationConfig.id, bare.pushNotificationConfig.url],
    [id, HOOK],
    'one without an id is called like its task'
  )
  t.alike(bareOf(await client.getTaskPushNotificationConfig(name)), bareOf(told))
  const listed = async (): Promise<string[]> =>
    (await client.listTaskPushNotificationConfig({ id })).map((one) => one.pushNotificationConfig.id ?? '').sort()
  t.alike(await listed(), ['mine', id].sort())
  await client.deleteTaskPushNotificationConfig(name)
  t.alike(await listed(), [id])
  await rejects(t, client.getTaskPushNotificationConfig(name), 'TaskNotFoundError')
}

test('the official clients of both versions set, get, list and delete push configs, by JSON-RPC and by REST', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  for (const transport of ['JSONRPC', 'HTTP+JSON'] as const) {
    const client = await clientOf(node, 'talk', transport)
    t.is((await client.getAgentCard()).capabilities?.pushNotifications, true)
    await pushOne(t, client)
    await pushOld(t, await oldClientOf(node, 'talk', transport))
  }
})
