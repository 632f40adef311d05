// Chooses where the temporary directories of tests stand.
import fs from 'node:fs'
import os from 'node:os'

/** The file system in memory that Linux provides. */
const IN_MEMORY = '/dev/shm'
/** Bytes that must be free there: tests occupy far less at once. */
const NEEDED_BYTES = 2 * 1024 ** 3

/**
 * A directory for temporary directories, with a short name: unix sockets below it may have paths of at most 103 bytes.
 * It is in memory where possible: tests wait for a disk half of their time, and none can tell whether data survives a
 * loss of power.
 * @param {{ mounts: string, freeBytes: number }} system the text of /proc/mounts, and the room in memory
 */
export function scratchPlace({ mounts, freeBytes } = thisSystem()) {
  const mount = mounts.split('\n').findLast((line) => line.split(' ')[1] === IN_MEMORY)
  const [, , type, options] = mount?.split(' ') ?? []
  // Tests run programs that they write.
  if (type === 'tmpfs' && !options.split(',').includes('noexec') && freeBytes >= NEEDED_BYTES) return IN_MEMORY
  return fs.existsSync('/tmp') ? '/tmp' : os.tmpdir()
}

function thisSystem() {
  try {
    fs.accessSync(IN_MEMORY, fs.constants.W_OK)
    const { bavail, bsize } = fs.statfsSync(IN_MEMORY)
    return { mounts: fs.readFileSync('/proc/mounts', 'utf8'), freeBytes: bavail * bsize }
  } catch {
    return { mounts: '', freeBytes: 0 }
  }
}
