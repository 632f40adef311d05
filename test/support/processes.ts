import fs from 'node:fs/promises'

/** Live processes whose command line has a mark: of one parent group of pids, or all; zombies do not count. Linux. */
export async function processesWith(
  mark: string,
  session: number | null,
  among?: readonly number[]
): Promise<number[]> {
  const found: number[] = []
  for (const name of await fs.readdir('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid || (among !== undefined && !among.includes(pid))) continue
    const [cmdline, stat] = await Promise.all([read(`/proc/${pid}/cmdline`), read(`/proc/${pid}/stat`)])
    if (!cmdline.split('\0').includes(mark) || / [ZX] /.test(stat.slice(stat.lastIndexOf(')')))) continue
    if (session === null || (await descendsFrom(pid, session))) found.push(pid)
  }
  return found
}

async function descendsFrom(pid: number, ancestor: number): Promise<boolean> {
  for (let at = pid; at > 1; ) {
    const stat = await read(`/proc/${at}/stat`)
    if (stat === '') return false
    at = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    if (at === ancestor) return true
  }
  return false
}

async function read(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8')
  } catch {
    return ''
  }
}
