import { compileTests } from '../../testing/compile.mjs'

/** Honest calls of a phase. */
const CALLS = 250

/** What each attack of a hostile member costs an honest pair: calls without and with it in turn, `runs` times. */
export async function figures({ runs, say }) {
  const { attacks, fullRun, MAX_MEMORY } = await compileTests('test/support/hostile/full.js')
  const all = []
  for (const attack of attacks) {
    say(attack.name)
    // Bytes on disk are given back after 10 minutes, which `npm run hostile` waits for.
    const report = await fullRun({ ...attack, returned: undefined }, { calls: CALLS * runs, rounds: runs })
    all.push(...figuresOf(report, MAX_MEMORY))
  }
  return all
}

function figuresOf({ name, rounds, before, after, cutSeconds, revokedSeconds }, maxMemory) {
  const cut =
    cutSeconds === null ? { samples: [], note: 'not cut: it is held to its share' } : { samples: [cutSeconds] }
  const all = [
    { what: 'p99 with to without', unit: 'x', goal: 2, samples: rounds.map(({ quiet, busy }) => busy.p99 / quiet.p99) },
    { what: 'p99 without', unit: 'ms', samples: rounds.map(({ quiet }) => quiet.p99) },
    { what: 'p99 with', unit: 'ms', samples: rounds.map(({ busy }) => busy.p99) },
    { what: 'memory of an honest node, most', unit: 'MiB', goal: maxMemory, samples: [after.memory] },
    { what: 'disk that an honest node keeps', unit: 'MiB', samples: [after.disk - before.disk] },
    { what: 'until it is cut', unit: 's', ...cut },
    { what: 'until it is revoked', unit: 's', samples: [revokedSeconds] }
  ]
  return all.map(({ what, ...figure }) => ({ goal: null, ...figure, name: `${name}: ${what}` }))
}
