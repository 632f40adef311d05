import { resolveHome } from '../../config/paths.js'
import { asNodeError } from '../../kit/errors.js'
import type { CommandContext } from '../context.js'
import { EXIT_CODES } from '../exit-codes.js'
import { isForgotten, type Options, textOption } from '../options.js'
import { callerIn, quickOptions } from './quick.js'
import { serveClient } from './serve.js'

/**
 * Runs `mcp serve` as this process without the parser of the command line, where its words allow that. Never rejects;
 * sets the exit code.
 */
export async function main(argv: readonly string[]): Promise<void> {
  const options = quickOptions(argv.slice(2))
  if (options === null) return await (await import('../main.js')).main(argv)
  // A client that reads no errors is no reason to end.
  process.stderr.on('error', () => {})
  try {
    process.exitCode = await serveClient({
      paths: resolveHome({ home: textOption(options, 'home') ?? null }),
      home: textOption(options, 'home') ?? null,
      terms: callerIn(options),
      note: (line) => void contextOf(options, argv).then(({ output }) => output.note(line)),
      ...(isForgotten(options, 'start') ? {} : { start: () => start(options, argv) })
    })
  } catch (thrown) {
    const error = asNodeError(thrown)
    const { output } = await contextOf(options, argv)
    output.error(error.toBody())
    process.exitCode = EXIT_CODES[error.code]
  }
}

async function start(options: Options, argv: readonly string[]): Promise<void> {
  const { startForClients } = await import('./start-for-clients.js')
  await startForClients(await contextOf(options, argv), options)
}

/** The context of a command, loaded when a person has something to read, or a node is started. */
async function contextOf(options: Options, typed: readonly string[]): Promise<CommandContext> {
  const [{ Output }, { commandContext }] = await Promise.all([import('../terminal/output.js'), import('../context.js')])
  const { stdout: out, stderr: err, env } = process
  const home = textOption(options, 'home') ?? null
  return commandContext({ output: new Output({ json: false, color: 'auto', out, err, env, home, typed }), home, env })
}
