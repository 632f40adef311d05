import { createWebhooks } from '../../src/adapters/a2a/push/webhook-sender.js'
import { systemClock } from '../../src/adapters/system/system-clock.js'
import { countingIds } from '../support/counting-ids.js'
import { FakeWebhooks } from '../support/fake-webhooks.js'
import { actor } from '../support/membership.js'
import { receiver } from '../support/webhook.js'
import { webhooksContract } from './webhooks.js'

const NODE = actor('node')

webhooksContract('webhooks over HTTP', async (t) => {
  const { host, url, answer, until } = await receiver(t)
  const [name = '', port] = host.split(':')
  const signer = { sign: NODE.sign, nodeId: NODE.id, issuer: 'http://127.0.0.1:8421', ids: countingIds() }
  const webhooks = createWebhooks({
    policy: { allowed: [{ host: name, port: Number(port) }] },
    signer,
    clock: systemClock()
  })
  const answers = {
    takes: { status: 204 },
    refuses: { status: 403 },
    'is gone': { status: 410 },
    'is busy': { status: 429, headers: { 'retry-after': '7' } },
    holds: null
  }
  return {
    webhooks,
    url,
    inside: 'http://169.254.169.254/',
    mood: (mood) => answer(() => answers[mood]),
    until: async (count) =>
      (await until(count)).map(({ headers, body }) => ({
        id: headers['webhook-id'] ?? '',
        event: headers['x-a2a-event'] ?? '',
        body
      }))
  }
})

webhooksContract('webhooks without a network', async () => {
  const webhooks = new FakeWebhooks()
  const url = 'https://alice.example.com/hook'
  const answers = {
    takes: { type: 'taken' },
    refuses: { type: 'refused', reason: 'HTTP 403' },
    'is gone': { type: 'gone', reason: 'HTTP 410' },
    'is busy': { type: 'failed', reason: 'HTTP 429', retryAfterMs: 7000 },
    holds: null
  } as const
  return {
    webhooks,
    url,
    inside: 'https://private/',
    mood: (mood) => void webhooks.answers.set(url, () => answers[mood]),
    until: (count) => Promise.resolve(webhooks.tries.slice(0, count))
  }
})
