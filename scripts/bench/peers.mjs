import { fileURLToPath } from 'node:url'

const PEER = fileURLToPath(new URL('message-peer.mjs', import.meta.url))

/** A peer process as a function from a command to its result. */
export function openPeer(lab, env) {
  const child = lab.spawn(process.execPath, [PEER], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  return (command) =>
    new Promise((resolve, reject) => {
      const onExit = (code) => reject(new Error(`a peer of the message bench ended with ${code}`))
      child.once('exit', onExit)
      child.once('message', (result) => {
        child.off('exit', onExit)
        if (result.error === undefined) resolve(result)
        else reject(new Error(result.error))
      })
      child.send(command)
    })
}
