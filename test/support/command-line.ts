import { startAny } from '../../src/cli/commands/start.js'
import type { Action } from '../../src/cli/context.js'
import { runCommandLine } from '../../src/cli/main.js'
import { type RunningNode, startNode } from '../../src/compose/compose.js'

type Env = Readonly<Record<string, string | undefined>>

/** What a finished command line left. */
export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a command line in this process, with this environment and without a terminal. A `start` has to end without a
 * node of its own: a node that comes up is closed, and the promise rejects.
 */
export async function ranHere(args: readonly string[], env: Env): Promise<Finished> {
  let started: RunningNode | null = null
  const finished = await runHere(args, env, async (node) => {
    started = node
    await node.close()
  })
  if (started !== null) throw new Error(`a node started: ${finished.stdout}`)
  return finished
}

/** A node that a command line started. */
export interface StartedHere {
  readonly node: RunningNode
  /** Resolves with the exit code of the command. */
  readonly exited: Promise<{ readonly code: number }>
  /** The text that it wrote to stderr. */
  errors(): string
}

/** Starts the node of a command line (`--home DIR start ...`) in this process; resolves when it is ready. */
export async function startedHere(args: readonly string[], env: Env): Promise<StartedHere> {
  const err = sink()
  return await new Promise((resolve, reject) => {
    const exited = runHere(args, env, (node) => resolve({ node, exited, errors: err.text }), err)
    exited.then(({ stderr }) => reject(new Error(`the node ended before it was ready: ${stderr}`)), reject)
  })
}

/** Runs a command line; gives each node that it starts to `onNode` when it is ready. */
async function runHere(
  args: readonly string[],
  env: Env,
  onNode: (node: RunningNode) => Promise<void> | void,
  err: Sink = sink()
): Promise<Finished> {
  const out = sink()
  const start: Action = (context, _args, options) =>
    startAny(context, options, async (given) => {
      const node = await startNode({ ...given, log: (line) => err.write(line) })
      await onNode(node)
      return node
    })
  const code = await runCommandLine(args, { out, err, env, actions: { start } })
  return { code, stdout: out.text(), stderr: err.text() }
}

interface Sink {
  write(chunk: string | Uint8Array): void
  text(): string
}

function sink(): Sink {
  const chunks: Uint8Array[] = []
  return { write: (chunk) => void chunks.push(Buffer.from(chunk)), text: () => Buffer.concat(chunks).toString('utf8') }
}
