import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort, openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { inTurn, localEnv, times } from '../nodes.mjs'
import { cpuMs, openPeer } from '../peers.mjs'

/** Round trips of one run, each way, in blocks that take turns. */
const BLOCKS = 20
const BLOCK = 100
const WARM_UP = 2000
const REQUESTS = { count: 3000, inFlight: 64 }
/** One after the other. */
const SINGLE = { count: 300, inFlight: 1 }
/** Calls of the trace of system calls, and the fsyncs that they need at least. */
const TRACED = 100
const NAME = 'notification round trip, 256 B'
/** Notifications one way, as many as take about a second. */
const ONE_WAY = 20_000

/** What a ledger promises, and the requests a second that it is to allow. */
const DURABILITIES = { power: 2000, process: 4000 }

/** Messages between two processes: those that may be lost, and those that may not. */
export async function figures({ runs, say }) {
  return [...(await notifications(runs)), ...(await oneWay(runs)), ...(await requests(runs, say))]
}

/** A notification between agents inside two processes and back, against a raw echo between the same two processes. */
async function notifications(runs) {
  const lab = openLab()
  try {
    const env = localEnv(await freePort())
    const [echo, ping] = [openPeer(lab, env), openPeer(lab, env)]
    const port = env.A2A_NODE_LOCAL_PORT
    const place = await echo({ command: 'echo', port, home: path.join(lab.dir(), 'h') })
    await ping({ command: 'open', port, home: path.join(lab.dir(), 'h'), ...place })
    const ways = place.code === null ? ['raw'] : ['raw', 'ours']
    await inTurn(ways, (way) => ping({ command: 'measure', way, count: WARM_UP }))
    const rounds = await times(runs, () => round(ping, ways))
    return rows(rounds)
  } finally {
    await lab.close()
  }
}

/** Blocks of both ways in turn; the p50 of each way, in milliseconds. */
async function round(ping, ways) {
  const samples = { raw: [], ours: [] }
  await times(BLOCKS, () =>
    inTurn(ways, async (way) => {
      samples[way].push(...(await ping({ command: 'measure', way, count: BLOCK })).samples)
    })
  )
  return { raw: median(samples.raw), ours: median(samples.ours) }
}

function rows(rounds) {
  const measured = rounds.filter(({ ours }) => !Number.isNaN(ours))
  const note =
    measured.length === 0
      ? 'skipped: this build has no agents inside the process (RunningNode.attach)'
      : `each sample compares the p50 of ${BLOCKS * BLOCK} round trips each way, in blocks of ${BLOCK} in turn`
  return [
    {
      name: `${NAME}, to the raw echo`,
      unit: 'x',
      goal: 3,
      samples: measured.map(({ ours, raw }) => ours / raw),
      note
    },
    { name: NAME, unit: 'ms', goal: null, samples: measured.map(({ ours }) => ours) },
    { name: 'raw echo of a DHT stream, 256 B', unit: 'ms', goal: null, samples: rounds.map(({ raw }) => raw) }
  ]
}

/** Notifications of an agent of one process to an agent of another, as fast as both nodes let them. */
async function oneWay(runs) {
  const lab = openLab()
  try {
    const env = localEnv(await freePort())
    const [echo, ping] = [openPeer(lab, env), openPeer(lab, env)]
    const port = env.A2A_NODE_LOCAL_PORT
    const { sink, ...place } = await echo({ command: 'echo', port, home: path.join(lab.dir(), 'h') })
    await ping({ command: 'open', port, home: path.join(lab.dir(), 'h'), ...place })
    const rate = async () => {
      const from = performance.now()
      await ping({ command: 'oneWay', sink, count: ONE_WAY })
      for (let taken = 0; taken < ONE_WAY; ) taken += (await echo({ command: 'count' })).taken
      return ONE_WAY / ((performance.now() - from) / 1000)
    }
    await rate()
    return [
      {
        name: 'notifications one way, 256 B',
        unit: '/s',
        goal: null,
        samples: await times(runs, rate),
        note: `${ONE_WAY} in a row`
      }
    ]
  } finally {
    await lab.close()
  }
}

/** Requests and responses that both ends record, with either durability in turn. */
async function requests(runs, say) {
  const lab = openLab()
  try {
    const pairs = await inTurn(Object.keys(DURABILITIES), (durability) => pairOf(lab, durability))
    for (const { ping } of pairs) await ping({ command: 'requests', ...REQUESTS })
    const samples = pairs.map(() => ({ rate: [], cpu: [], p50: [], ack: [], disk: [] }))
    await times(runs, () =>
      inTurn([...pairs.entries()], async ([at, { ping, processes }]) => {
        const before = cpuMs(processes)
        samples[at].rate.push((await ping({ command: 'requests', ...REQUESTS })).perSecond)
        samples[at].cpu.push((1000 * (cpuMs(processes) - before)) / REQUESTS.count)
        const { p50, ackP50 } = await ping({ command: 'requests', ...SINGLE })
        samples[at].p50.push(p50)
        samples[at].ack.push(ackP50)
        samples[at].disk.push(diskP50(lab.dir()))
      })
    )
    const syncs = await tracedSyncs(pairs[0], say)
    return [...pairs.flatMap(({ durability }, at) => requestRows(durability, samples[at])), syncs]
  } finally {
    await lab.close()
  }
}

async function pairOf(lab, durability) {
  const env = { ...localEnv(await freePort()), A2A_NODE_LEDGER_DURABILITY: durability }
  const processes = []
  const counted = { spawn: (...args) => processes[processes.push(lab.spawn(...args)) - 1] }
  const [echo, ping] = [openPeer(counted, env), openPeer(counted, env)]
  const port = env.A2A_NODE_LOCAL_PORT
  const place = await echo({ command: 'echo', port, home: path.join(lab.dir(), 'h') })
  await ping({ command: 'open', port, home: path.join(lab.dir(), 'h'), ...place })
  return { durability, ping, processes }
}

function requestRows(durability, { rate, cpu, p50, ack, disk }) {
  const called = `request and response, ${durability}`
  return [
    {
      name: `${called}, 64 in flight`,
      unit: '/s',
      goal: DURABILITIES[durability],
      bound: 'min',
      samples: rate,
      note: REQUEST_NOTE
    },
    {
      name: `${called}, of all processors`,
      unit: 'us',
      goal: null,
      samples: cpu,
      note: 'time that both processes and all their threads ran, a request'
    },
    {
      name: `${called}, one in flight, p50`,
      unit: 'ms',
      goal: null,
      samples: p50,
      note: 'until the response is on record; five commits one after the other'
    },
    {
      name: `acknowledgement, ${durability}, one in flight, p50`,
      unit: 'ms',
      goal: durability === 'power' ? 2 : null,
      samples: ack,
      note: 'from before the request is recorded here until it is on record there, and that is known here'
    },
    ...(durability === 'power' ? [diskRow(disk)] : [])
  ]
}

function diskRow(samples) {
  return {
    name: '1 KB appended and fdatasynced, p50',
    unit: 'ms',
    goal: null,
    samples,
    note: 'what the disk takes, in the same turns; an acknowledgement needs two of them'
  }
}

/** The p50 of what a bare append and its fdatasync take now. */
function diskP50(dir) {
  const file = fs.openSync(path.join(dir, 'raw'), 'w')
  const bytes = Buffer.alloc(1024, 7)
  const waits = Array.from({ length: 100 }, () => {
    const from = performance.now()
    fs.writeSync(file, bytes)
    fs.fdatasyncSync(file)
    return performance.now() - from
  })
  fs.closeSync(file)
  return median(waits)
}

const REQUEST_NOTE =
  'on the clock; 256 B each way; both ends record each request before they send or do it; its capability may not be repeated'

/**
 * Counts what a peer has fsynced for calls one after the other, with strace; without samples where that is not to be
 * had.
 */
async function tracedSyncs({ ping, processes }, say) {
  const row = { name: `fsyncs of the caller for ${TRACED} calls, power`, unit: '', goal: TRACED, bound: 'min' }
  const tracer = spawn('strace', ['-f', '-c', '-e', 'trace=fsync,fdatasync', '-p', String(processes[1].pid)])
  let text = ''
  tracer.stderr.setEncoding('utf8').on('data', (more) => {
    text += more
  })
  const ended = new Promise((resolve) => tracer.once('close', resolve).once('error', resolve))
  const isAttached = await Promise.race([ended.then(() => false), until(() => text.includes('attached'))])
  if (!isAttached) {
    say(`no trace of system calls: ${text.trim() || 'there is no strace here'}`)
    return { ...row, samples: [], note: 'skipped: strace is not here, or may not attach' }
  }
  await ping({ command: 'requests', count: TRACED, inFlight: 1 })
  tracer.kill('SIGINT')
  await ended
  const calls = [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*(?:fsync|fdatasync)$/gm)].map(([, count]) =>
    Number(count)
  )
  return { ...row, samples: [calls.reduce((sum, one) => sum + one, 0)], note: 'counted by strace' }
}

async function until(isTrue) {
  while (!isTrue()) await delay(20)
  return true
}
