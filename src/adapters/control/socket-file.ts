import { chmod, lstat, unlink } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { messageOf, NodeError } from '../../kit/errors.js'
import { makePrivateDirectory } from './private-directory.js'

/**
 * Prepares the path of a unix socket: its directory exists, belongs to this user alone (0700), and no live server holds
 * the path. Removes a socket file that a crash left behind.
 * @throws NodeError ALREADY_RUNNING when a server answers; NO_PERMISSION when the directory or file is not ours;
 * DISK_FULL
 */
export async function claimSocket(file: string): Promise<void> {
  await ownDirectory(path.dirname(file))
  const stats = await lstat(file).catch(() => null)
  if (stats === null) return
  if (!stats.isSocket())
    throw new NodeError('NO_PERMISSION', `${file} is in the way of the control socket and is no socket`)
  if (await isAnswering(file)) throw new NodeError('ALREADY_RUNNING', `a node serves ${file} already`)
  await unlink(file).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw refused(file, error)
  })
}

/** Does a process accept connections on the socket? Connects and hangs up. */
export function isAnswering(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(file)
    socket.once('connect', () => done(true))
    // EAGAIN: a full backlog, so somebody listens.
    socket.once('error', (error) => done((error as NodeJS.ErrnoException).code === 'EAGAIN'))
    function done(answers: boolean): void {
      socket.destroy()
      resolve(answers)
    }
  })
}

async function ownDirectory(dir: string): Promise<void> {
  try {
    await makePrivateDirectory(dir)
  } catch (error) {
    throw refused(dir, error)
  }
  const stats = await lstat(dir)
  const uid = process.getuid?.() ?? stats.uid
  if (!stats.isDirectory() || stats.uid !== uid) {
    throw new NodeError(
      'NO_PERMISSION',
      `${dir} is not a directory of this user: no control socket can be served there`
    )
  }
  if ((stats.mode & 0o077) !== 0) await chmod(dir, 0o700)
}

function refused(place: string, error: unknown): NodeError {
  const code = (error as NodeJS.ErrnoException).code === 'ENOSPC' ? 'DISK_FULL' : 'NO_PERMISSION'
  return new NodeError(code, `cannot use ${place}: ${messageOf(error)}`, { cause: error })
}
