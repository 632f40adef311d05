import type { CommandRow, OptionSpec } from '../terminal/table.js'

const STRATEGIES = ['each', 'map', 'race', 'vote', 'pipeline', 'plan'] as const

const RESULTS: OptionSpec = {
  flags: '--results <form>',
  about: 'results at the end: table (default: at most 50), json (stdout has nothing else), or files DIR',
  pairs: ['files']
}

/** The commands under `swarm`. */
export const SWARM_COMMANDS: readonly CommandRow[] = [
  {
    name: 'run',
    args: '<goal>',
    about: 'split the goal into items for capable agents on all nodes',
    options: [
      { flags: '--capability <id>', about: 'capability of the agents; several are stages or sub-tasks', repeat: true },
      { flags: '--strategy <name>', about: 'how the work is split and combined, see below', choices: STRATEGIES },
      { flags: '--plan <file>', about: 'YAML of sub-tasks that build on each other' },
      {
        flags: '--answers <n>',
        about: 'race, vote: number of answering agents (default: every eligible one, up to 64)'
      },
      { flags: '--judge <capability>', about: 'vote: the judge that decides instead of the majority' },
      { flags: '--reduce <name>', about: 'make one result: concat, merge, count, first or a capability' },
      { flags: '--label <label>', about: 'only agents of nodes that carry it', repeat: true },
      { flags: '--items <source>', about: 'a glob (quoted), a file of lines or JSON, or - for stdin' },
      { flags: '--input <template>', about: 'JSON over {item}, {file}, {text}, {goal}, {round} and {check}' },
      { flags: '--attach', about: 'send the contents of the files too (15 MiB each, 47 MiB in all)' },
      { flags: '--max-parallel <n>', about: 'items under way at once' },
      { flags: '--retries <n>', about: 'further tries of a failed item (default: 2)' },
      { flags: '--fail-fast', about: 'cancel the swarm when an item fails' },
      { flags: '--max-failures <n>', about: 'cancel it when more items fail (default: without a limit)' },
      { flags: '--deadline <duration>', about: 'give up after this time (default: 10m)' },
      { flags: '--justification <text>', about: 'reason for asking a more powerful tier' },
      { flags: '--idempotency-key <key>', about: 'the same key again follows the same swarm' },
      {
        flags: '--allow-repeat',
        about: 'do items again that failed or may have begun, though it is not declared safe'
      },
      { flags: '--no-takeover', about: 'only this node coordinates it, however long it is away' },
      {
        flags: '--until <command>',
        about: 'repeat until this shell command exits 0; its output goes into the next round'
      },
      { flags: '--max-rounds <n>', about: 'with --until: rounds at most (default: 10)' },
      { flags: '--yes', about: 'begin the plan of a planner without confirmation' },
      { flags: '--dry-run', about: 'show the agents of each part and the excluded ones; begins nothing' },
      RESULTS,
      { flags: '--detach', about: 'do not wait; prints the id' }
    ],
    more: [
      'Strategies: each (every agent once), map (every item once), race (the first good result wins, the others are',
      'canceled), vote (what more than half of the answers say), pipeline (the result of one --capability is the input of',
      'the next), plan (--plan, or several --capability side by side). Without one: map with --items, plan with --plan or',
      'several capabilities, else each. A goal without any goes to an agent that offers swarm.plan: its plan is shown, and',
      'begun when you say so.',
      '',
      'The input of an item: a line is {"item": line}, a line of JSON itself, a file {"file": path}, with --attach also',
      '{"text": contents}. --input makes another of them, e.g. \'{"text":"{item}"}\'.',
      '',
      'A swarm outlives its node: among three nodes or more another one that takes part carries it on, else it goes on when',
      'the node runs again; see a2a-node swarm watch.',
      'Ctrl-C cancels the swarm and waits for its end; a second Ctrl-C quits at once.',
      'Exit codes: 0 completed, 8 partly, 1 failed or canceled.',
      '',
      "Example: a2a-node swarm run 'count words' --capability text.stats --items 'src/**/*.ts' --attach"
    ],
    load: async () => (await import('../commands/swarm-run.js')).runSwarm
  },
  {
    name: 'ls',
    about: 'the swarms that this node launched or votes in (it votes in none of --no-takeover)',
    load: async () => (await import('../commands/swarm.js')).listSwarms
  },
  {
    name: 'show',
    args: '<id>',
    about: 'status and progress of a swarm',
    load: async () => (await import('../commands/swarm.js')).showSwarm
  },
  {
    name: 'watch',
    args: '<id>',
    about: 'follow a swarm to its end',
    load: async () => (await import('../commands/swarm.js')).watchSwarm
  },
  {
    name: 'results',
    args: '<id>',
    about: 'one accepted result an item',
    load: async () => (await import('../commands/swarm.js')).swarmResults
  },
  {
    name: 'retry',
    args: '<id>',
    about: 'try failed items of an ended swarm again, as a new swarm',
    options: [
      { flags: '--failed', about: 'the failed items (default)' },
      { flags: '--unknown', about: 'items with an unknown outcome; check first what they did' },
      RESULTS,
      { flags: '--detach', about: 'do not wait; prints the id' }
    ],
    more: [
      'Only for --strategy map, on the node that launched it, until its results expire.',
      'Ctrl-C cancels the new swarm and waits for its end; a second Ctrl-C quits at once.'
    ],
    load: async () => (await import('../swarm/retry.js')).retrySwarm
  },
  {
    name: 'cancel',
    args: '<id>',
    about: 'stop a swarm',
    load: async () => (await import('../commands/swarm.js')).cancelSwarm
  }
]
