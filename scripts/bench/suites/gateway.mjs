import { once } from 'node:events'
import http from 'node:http'
import { GATEWAYS } from '../gateway-servers.mjs'
import { freePort, openLab } from '../lab.mjs'
import { inTurn, times } from '../nodes.mjs'

/** So many before anything is measured that the engine has compiled what it will: a node runs for weeks. */
const SENDS = { warmUp: 6000, count: 4000, inFlight: 8 }
const CARDS = { warmUp: 500, count: 4000, inFlight: 8 }
/** Tasks that a list is of. */
const TASKS = 60_000
const STREAMS = 1000

/** The A2A gateway of a node beside bare node:http and the SDK's own express server (in memory), in turns. */
export async function figures({ runs, say }) {
  const lab = openLab()
  try {
    // As bin/a2a-node.js has it; for all three, so that they are alike.
    const env = { ...process.env, MALLOC_ARENA_MAX: '2', A2A_NODE_LOCAL_PORT: String(await freePort()) }
    const [bare, ours, sdk] = await inTurn(['bare', 'ours', 'sdk'], async (kind) => {
      const child = lab.spawn(process.execPath, [GATEWAYS, kind], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        env
      })
      const [told] = await once(child, 'message')
      return { child, ...told, tasks: 0, agent: new http.Agent({ keepAlive: true, maxSockets: SENDS.inFlight }) }
    })
    const measured = [
      ...(await sends(runs, { bare, ours, sdk })),
      await cards(runs, { ours, sdk }),
      ...(await manyTasks({ ours, say })),
      await streams(ours)
    ]
    for (const { agent } of [bare, ours, sdk]) agent.destroy()
    return measured
  } finally {
    await lab.close()
  }
}

async function sends(runs, { bare, ours, sdk }) {
  const cost = async (way, isTask) => {
    const before = await stateOf(way)
    await repeat(() => send(way, isTask), SENDS)
    return (await stateOf(way)).cpuUs - before.cpuUs
  }
  for (const way of [bare, ours, sdk])
    for (const isTask of [false, true]) await repeat(() => send(way, isTask), { ...SENDS, count: SENDS.warmUp })
  const [messages, tasks, toSdk] = [[], [], []]
  await times(runs, async () => {
    const [one, two] = await inTurn([bare, ours], (way) => cost(way, false))
    messages.push(two / one)
    const [three, four, five] = await inTurn([bare, ours, sdk], (way) => cost(way, true))
    tasks.push(four / three)
    toSdk.push(four / five)
  })
  const note = `${SENDS.count} sends a sample, token and rules checked`
  return [
    {
      name: 'send answered by a message, processor time to bare node:http',
      unit: 'x',
      goal: 2,
      samples: messages,
      note
    },
    {
      name: 'send answered by a task (`process`), the same',
      unit: 'x',
      goal: 3,
      samples: tasks,
      note: 'waits until it is completed'
    },
    { name: "the same, to the SDK's express server in memory", unit: 'x', goal: 0.6, samples: toSdk }
  ]
}

async function cards(runs, { ours, sdk }) {
  const rate = async (way) => {
    const start = performance.now()
    await repeat(() => get(way, '/.well-known/agent-card.json'), CARDS)
    return CARDS.count / (performance.now() - start)
  }
  for (const way of [ours, sdk])
    await repeat(() => get(way, '/.well-known/agent-card.json'), { ...CARDS, count: CARDS.warmUp })
  const samples = []
  await times(runs, async () => {
    const [one, two] = await inTurn([ours, sdk], rate)
    samples.push(one / two)
  })
  return { name: "card GET, rate to the SDK's", unit: 'x', goal: 2, bound: 'min', samples }
}

async function manyTasks({ ours, say }) {
  say(`${TASKS} tasks ...`)
  await repeat(() => send(ours, true), { count: TASKS - ours.tasks, inFlight: 16 })
  const page = async () => {
    const start = performance.now()
    const text = await get(ours, '/a2a/tasks?pageSize=50')
    if (JSON.parse(text).totalSize < TASKS) throw new Error(`${JSON.parse(text).totalSize} tasks`)
    return performance.now() - start
  }
  await repeat(page, { count: 20, inFlight: 1 })
  const samples = []
  await times(50, async () => samples.push(await page()))
  const { rss } = await stateOf(ours)
  return [
    { name: `a page of 50 of ${TASKS} tasks`, unit: 'ms', goal: 5, samples },
    {
      name: `memory of the node after ${TASKS} tasks`,
      unit: 'MB',
      goal: 250,
      samples: [rss / 1_000_000],
      note: 'all of the node'
    }
  ]
}

/** Streams of tasks that wait, held at once. */
async function streams(ours) {
  const agent = new http.Agent({ maxSockets: STREAMS })
  const open = async () => {
    const request = post({ ...ours, agent }, '/agents/sleeper/message:stream', body(true).params)
    const [response] = await once(request, 'response')
    const [chunk] = await once(response.setEncoding('utf8'), 'data')
    if (!chunk.startsWith('id: 1')) throw new Error(chunk)
    return request
  }
  const held = await Promise.all(Array.from({ length: STREAMS }, open))
  for (const request of held) request.destroy()
  agent.destroy()
  return {
    name: 'streams held at once',
    unit: 'streams',
    goal: 1000,
    bound: 'min',
    samples: [held.length],
    note: 'with http.maxConnections at 1200'
  }
}

let number = 0

function body(isTask) {
  const metadata = isTask ? { metadata: { task: true } } : {}
  const message = { messageId: `m${++number}`, role: 'ROLE_USER', parts: [{ text: 'ping' }], ...metadata }
  return { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
}

async function send(way, isTask) {
  const [response] = await once(post(way, isTask ? '/agents/worker' : '/agents/reader', body(isTask)), 'response')
  const text = await textOf(response)
  if (isTask) way.tasks++
  if (!text.includes('"result"') || (isTask && way.isBare !== true && !text.includes('COMPLETED')))
    throw new Error(text)
}

function post({ port, token, agent }, place, value) {
  const text = JSON.stringify(value)
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'a2a-version': '1.0',
    authorization: `Bearer ${token}`
  }
  const request = http.request({ host: '127.0.0.1', port, path: place, method: 'POST', headers, agent })
  request.on('error', () => {})
  request.end(text)
  return request
}

async function get({ port, token, agent }, place) {
  const request = http.request({
    host: '127.0.0.1',
    port,
    path: place,
    headers: { authorization: `Bearer ${token}` },
    agent
  })
  request.end()
  const [response] = await once(request, 'response')
  const text = await textOf(response)
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${text}`)
  return text
}

async function textOf(response) {
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return text
}

async function stateOf({ child }) {
  child.send('state')
  const [state] = await once(child, 'message')
  return state
}

async function repeat(work, { count, inFlight }) {
  let left = count
  const worker = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
}
