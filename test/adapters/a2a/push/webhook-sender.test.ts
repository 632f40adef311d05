import { createHash, createHmac } from 'node:crypto'
import net, { type AddressInfo } from 'node:net'
import test, { type Assert } from 'brittle'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { CardSigner } from '../../../../src/adapters/a2a/cards/card-signature.js'
import { createWebhooks, type WebhookSenderDeps } from '../../../../src/adapters/a2a/push/webhook-sender.js'
import { MAX_WEBHOOK_BYTES, webhookBody } from '../../../../src/adapters/a2a/push/webhook-body.js'
import type { PushHook } from '../../../../src/domain/gateway/push.js'
import type { GatewaySnapshot } from '../../../../src/domain/gateway/task.js'
import { Abort } from '../../../../src/kit/abort.js'
import type { Webhooks } from '../../../../src/ports/webhooks.js'
import { REFUSED } from '../../../support/a2a/refused-addresses.js'
import { countingIds } from '../../../support/counting-ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'
import { receiver } from '../../../support/webhook.js'

const NODE = actor('node')
const ISSUER = 'http://127.0.0.1:8421'
const CALL = { id: 'hook_a.7', event: 'task.completed', body: '{"task":{"id":"task_1"}}' }
const hookTo = (url: string, more: Partial<PushHook> = {}): PushHook => ({
  id: 'mine',
  hook: 'hook_a',
  task: 'task_1',
  version: '1.0',
  url,
  ...more
})

function senderOf(host: string | null, more: Partial<WebhookSenderDeps> = {}): Webhooks {
  const [name = '', port] = host?.split(':') ?? []
  const allowed = host === null ? [] : [{ host: name, port: Number(port) }]
  const signer = { sign: NODE.sign, nodeId: NODE.id, issuer: ISSUER, ids: countingIds() }
  return createWebhooks({ policy: { allowed }, signer, clock: new ManualClock(), ...more })
}

test('a notification is signed by the secret of its config, and by the key of its node with a hash of the body', async (t: Assert) => {
  const hook = await receiver(t)
  const webhooks = senderOf(hook.host)
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const config = hookTo(hook.url, { token: 'tok', authentication: { schemes: ['HMAC-SHA256'], credentials: secret } })
  t.alike(await webhooks.send(config, CALL, new Abort()), { type: 'taken' })
  t.alike(
    await webhooks.send({ ...config, authentication: { schemes: ['Basic'], credentials: 'dTpw' } }, CALL, new Abort()),
    {
      type: 'taken'
    }
  )
  t.alike(
    await webhooks.send({ ...config, version: '0.3', authentication: { schemes: ['Bearer'] } }, CALL, new Abort()),
    { type: 'taken' }
  )
  const [signed, basic, bearer] = hook.got.map(({ headers }) => headers)
  const text = `${CALL.id}.${signed?.['webhook-timestamp']}.${CALL.body}`
  const mac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(text)
    .digest('base64')
  t.alike(
    [signed?.['webhook-id'], signed?.['webhook-signature'], signed?.['authorization']],
    [CALL.id, `v1,${mac}`, undefined]
  )
  t.alike(
    [signed?.['x-a2a-event'], signed?.['x-a2a-notification-token'], signed?.['content-type']],
    ['task.completed', 'tok', 'application/a2a+json']
  )
  t.alike([basic?.['authorization'], basic?.['webhook-signature']], ['Basic dTpw', undefined])
  t.alike(
    [bearer?.['authorization'], bearer?.['content-type']],
    [`Bearer ${bearer?.['x-a2a-notification-jwt']}`, 'application/json']
  )
  const keys = createLocalJWKSet(new CardSigner({ sign: NODE.sign, nodeId: NODE.id, keysUrl: '' }).keySet() as never)
  const options = {
    issuer: ISSUER,
    audience: hook.url,
    typ: 'a2a-notification+jwt',
    currentDate: new Date(1_700_000_010_000)
  }
  const [one, two] = await Promise.all(
    [signed, basic].map((headers) => jwtVerify(headers?.['x-a2a-notification-jwt'] ?? '', keys, options))
  )
  t.is(one?.payload['request_body_sha256'], createHash('sha256').update(CALL.body).digest('hex'))
  t.alike([one?.payload.sub, one?.payload.iat], ['task_1', 1_700_000_000])
  t.not(one?.payload.jti, two?.payload.jti, 'another try is no replay')
})

test('each of more than 60 forms of an address that leads inside is refused for a webhook', (t: Assert) => {
  const webhooks = senderOf(null)
  for (const [url, reason] of REFUSED) t.ok(reason.test(webhooks.refusal(url) ?? ''), url.slice(0, 60))
  t.is(webhooks.refusal('https://example.com/hook'), null)
})

test('a webhook whose name turns private reaches no socket when it is delivered to', async (t: Assert) => {
  let connections = 0
  const server = net.createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.address() as AddressInfo
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '169.254.169.254', '10.0.0.1']) {
    const resolve = (): Promise<{ address: string; family: number }[]> =>
      Promise.resolve([{ address, family: address.includes(':') ? 6 : 4 }])
    const webhooks = senderOf(null, { resolve })
    const url = `http://rebind.example.com:${port}/`
    t.is(webhooks.refusal(url), null, 'by its name it may be public')
    const answer = await webhooks.send(hookTo(url), CALL, new Abort())
    t.ok(answer.type === 'failed' && /address is refused/.test(answer.reason), JSON.stringify(answer))
  }
  t.is(connections, 0)
})

test('a redirect is refused and not followed; failures and silence are failures, and nothing is read of an endless answer', async (t: Assert) => {
  const hook = await receiver(t)
  const webhooks = senderOf(hook.host)
  const send = (): ReturnType<Webhooks['send']> => webhooks.send(hookTo(hook.url), CALL, new Abort())
  hook.answer(() => ({ status: 307, headers: { location: `${hook.url}/elsewhere` } }))
  t.is((await send()).type, 'refused')
  hook.answer(() => ({ status: 429, headers: { 'retry-after': '7' } }))
  t.alike(await send(), { type: 'failed', reason: 'HTTP 429', retryAfterMs: 7000 })
  hook.answer(() => ({ status: 410 }))
  t.alike(await send(), { type: 'gone', reason: 'HTTP 410' })
  t.alike(
    hook.got.map(({ path }) => path),
    ['/hook', '/hook', '/hook']
  )
  const endless = net.createServer((socket) => {
    socket.on('error', () => {})
    // Body bytes in the same packet as the head: they are there before anybody lets go of them.
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n${'x'.repeat(1000)}`)
    const timer = setInterval(() => socket.write('x'.repeat(1000)), 1)
    socket.on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => endless.close(() => resolve())))
  const host = `127.0.0.1:${(endless.address() as AddressInfo).port}`
  t.alike(await senderOf(host).send(hookTo(`http://${host}/`), CALL, new Abort()), { type: 'taken' })
})

test('a receiver that says nothing is given up on when its time is over, and at once when its config is deleted', async (t: Assert) => {
  const hook = await receiver(t)
  hook.answer(() => null)
  const clock = new ManualClock()
  const webhooks = senderOf(hook.host, { clock })
  const waiting = webhooks.send(hookTo(hook.url), CALL, new Abort())
  await hook.until(1)
  clock.advance(10_000)
  const answer = await waiting
  t.ok(answer.type === 'failed' && /no answer within/.test(answer.reason), JSON.stringify(answer))
  const stop = new Abort()
  const stopped = webhooks.send(hookTo(hook.url), CALL, stop)
  await hook.until(2)
  stop.abort()
  t.is((await stopped).type, 'failed')
  t.is(clock.pending, 0, 'no timer is left')
})

test('an update over the size of a notification is sent without its contents, in both versions', (t: Assert) => {
  const task = {
    id: 'task_1',
    contextId: 'ctx_1',
    state: 'working',
    message: null,
    since: 0,
    createdAt: 0,
    updatedAt: 0
  } as never as GatewaySnapshot['task']
  const artifact = { artifactId: 'a', parts: [{ text: 'x'.repeat(MAX_WEBHOOK_BYTES) }] }
  const snapshot = { task, history: [], artifacts: [artifact] }
  const event = { type: 'artifact', artifact, append: false, lastChunk: true, generation: 1, at: 0 } as const
  t.alike(JSON.parse(webhookBody('1.0', { task, event })), {
    task: {
      id: 'task_1',
      contextId: 'ctx_1',
      status: { state: 'TASK_STATE_WORKING', timestamp: '1970-01-01T00:00:00.000Z' }
    }
  })
  const old = JSON.parse(webhookBody('0.3', { snapshot })) as Record<string, unknown>
  t.alike([old['kind'], old['id'], old['artifacts']], ['task', 'task_1', []])
})
