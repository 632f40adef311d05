import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { fileAddress, RemoteFiles, type FileAddress } from '../../files/remote-files.js'
import { getFile as fetchFile } from '../../files/get.js'
import { putFile as sendFile, type Transferred, type TransferOptions } from '../../files/put.js'
import { durationOption, isSet, type Options, textOption } from '../../options.js'
import { progressLevel } from '../../reply.js'
import { type Cell, printTable } from '../../terminal/render.js'
import { bytesText } from '../../words.js'

/** `files ls <node>:[path]`. */
export const listFiles: Action = async (context, [text = ''], options) => {
  const { output } = context
  const address = fileAddress(text)
  return await interruptible(context, async (signal) => {
    const remote = remoteOf(context, { address, signal }, options)
    const found = await remote.ask(['files.list', address.path === '' ? {} : { path: address.path }])
    const entries = found.list('entries').map((one) => ({
      name: one.text('name'),
      type: one.text('type'),
      size: one.bytes('size'),
      modifiedAt: one.text('modifiedAt')
    }))
    const [path, truncated] = [found.text('path'), found.is('truncated')]
    if (output.json) output.object('files@1', { agent: found.agent, path, entries, truncated })
    else if (entries.length === 0) output.print('no files')
    else {
      const rows = entries.map(({ name, type, size, modifiedAt }): Cell[] => [
        type === 'directory' && !name.endsWith('/') ? `${name}/` : name,
        type === 'file' ? bytesText(size) : '-',
        modifiedAt
      ])
      await printTable(output, ['NAME', 'SIZE', 'MODIFIED'], rows)
    }
    if (truncated) output.note('there are more: name a directory below, or find files with files.search')
    return EXIT.ok
  })
}

/** `files get <node>:<path> [file|directory]`. */
export const getFile: Action = async (context, [text = '', target = '.'], options) => {
  const address = fileAddress(text)
  return await interruptible(context, async (signal) => {
    const transfer = transferOptions(context, signal, options)
    const done = await fetchFile(
      remoteOf(context, { address, signal }, options),
      { source: address.path, target },
      transfer
    )
    return printDone(context, { schema: 'files-get@1', done, file: done.file, isQuiet: isSet(options, 'quiet') })
  })
}

/** `files put <file> <node>:<path>`. */
export const putFile: Action = async (context, [source = '', text = ''], options) => {
  const address = fileAddress(text)
  return await interruptible(context, async (signal) => {
    const transfer = transferOptions(context, signal, options)
    const done = await sendFile(
      remoteOf(context, { address, signal }, options),
      { source, target: address.path },
      transfer
    )
    return printDone(context, {
      schema: 'files-put@1',
      done: { ...done, file: source },
      file: `${address.node}:${done.path}`,
      isQuiet: isSet(options, 'quiet')
    })
  })
}

function remoteOf(
  context: CommandContext,
  { address, signal }: { readonly address: FileAddress; readonly signal: AbortSignal },
  options: Options
): RemoteFiles {
  const [timeoutMs, justification] = [durationOption(options, 'timeout'), textOption(options, 'justification')]
  return new RemoteFiles({ context, address, level: progressLevel(context, options), signal, timeoutMs, justification })
}

function transferOptions(context: CommandContext, signal: AbortSignal, options: Options): TransferOptions {
  const { output } = context
  return { output, level: progressLevel(context, options), signal, isForced: isSet(options, 'force') }
}

/** Prints the hash in the form of sha256sum, which checks it. */
function printDone(
  { output }: CommandContext,
  {
    schema,
    done,
    file,
    isQuiet
  }: {
    readonly schema: string
    readonly isQuiet: boolean
    readonly done: Transferred & { readonly file: string }
    readonly file: string
  }
): number {
  if (output.json) output.object(schema, done)
  else {
    const isThere = done.bytes > 0 && done.resumedAt === done.bytes
    const copied = isThere ? 'the target has this content already' : `${bytesText(done.bytes)} copied`
    if (!isQuiet) output.note(`${copied}; both ends have the same SHA-256`)
    output.print(`${done.sha256}  ${shown(file, Number.POSITIVE_INFINITY)}`)
  }
  return EXIT.ok
}

/** Runs a transfer until Ctrl-C, which leaves its part to the next run. */
async function interruptible(
  { output }: CommandContext,
  run: (signal: AbortSignal) => Promise<number>
): Promise<number> {
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  process.once('SIGINT', abort)
  try {
    return await run(stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw withAgain(error, output.typed)
    output.note('interrupted; the same command continues')
    return EXIT.interrupted
  } finally {
    process.off('SIGINT', abort)
  }
}

/** An error that the same command may mend names it. */
function withAgain(error: unknown, again: string | null): unknown {
  if (!(error instanceof NodeError) || again === null || error.code !== 'CONFLICT') return error
  return new NodeError(error.code, error.message, { retryable: error.retryable, next: [again], cause: error })
}
