import fs from 'node:fs'
import { fileURLToPath } from 'node:url'

const PEER = fileURLToPath(new URL('message-peer.mjs', import.meta.url))

/** A peer process as a function from a command to its result. */
export function openPeer(lab, env) {
  return askChild(lab.spawn(process.execPath, [PEER], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
}

/** A process with an IPC channel, as a function from a command to its result. */
export function askChild(child) {
  return (command) =>
    new Promise((resolve, reject) => {
      const onExit = (code) => reject(new Error(`a peer ended with ${code}`))
      child.once('exit', onExit)
      child.once('message', (result) => {
        child.off('exit', onExit)
        if (result.error === undefined) resolve(result)
        else reject(new Error(result.error))
      })
      child.send(command)
    })
}

/** Milliseconds that all threads of processes have run so far; NaN where the system does not tell. */
export function cpuMs(processes) {
  return processes.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0)
}

function cpuMsOf(pid) {
  if (!fs.existsSync(`/proc/${pid}/stat`)) return Number.NaN
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
  // Behind the name, which may contain anything; a tick is 10 ms.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
