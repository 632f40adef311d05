import { commandContext } from '../../src/cli/context.js'
import { startAny } from '../../src/cli/commands/start.js'
import { runCommandLine } from '../../src/cli/main.js'
import { textOption } from '../../src/cli/options.js'
import { buildProgram } from '../../src/cli/program.js'
import { Output } from '../../src/cli/terminal/output.js'
import { type RunningNode, startNode } from '../../src/compose/compose.js'

type Env = Readonly<Record<string, string | undefined>>

/** What a finished command line left. */
export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command line in this process, with this environment and without a terminal. */
export async function ranHere(args: readonly string[], env: Env): Promise<Finished> {
  const [out, err] = [sink(), sink()]
  const code = await runCommandLine(args, { out, err, env })
  return { code, stdout: out.text(), stderr: err.text() }
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
  const [out, err] = [sink(), sink()]
  return await new Promise((resolve, reject) => {
    const program = buildProgram(async (_spec, _args, options) => {
      const home = textOption(options, 'home') ?? null
      const output = new Output({ json: true, color: 'never', out, err, env, home })
      const running = startAny(commandContext({ output, home, env }), options, async (given) => {
        const node = await startNode({ ...given, log: (line) => err.write(line) })
        resolve({ node, exited: running.then((code) => ({ code })), errors: err.text })
        return node
      })
      await running
    })
    program.parseAsync(args, { from: 'user' }).then(() => reject(new Error(`it runs already or ended: ${err.text()}`)), reject)
  })
}

function sink(): { write(chunk: string | Uint8Array): void; text(): string } {
  const chunks: Uint8Array[] = []
  return { write: (chunk) => void chunks.push(Buffer.from(chunk)), text: () => Buffer.concat(chunks).toString('utf8') }
}
