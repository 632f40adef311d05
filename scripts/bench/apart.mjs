// Preloaded into a node (`node --import`): it refuses links with the nodes whose keys are in the file REFUSED_LINKS, a
// key (z32) a line.
// So a chain is a chain whoever is killed. The product has no such setting.
import fs from 'node:fs'
import Hyperswarm from 'hyperswarm'
import z32 from 'z32'

const file = process.env.REFUSED_LINKS
/** Its name inside Hyperswarm: asked on both sides of a connection. */
const FIREWALL = '_handleFirewall'
const refuses = Hyperswarm.prototype[FIREWALL]

// A key that is refused here is not banned, so nothing else changes.
Hyperswarm.prototype[FIREWALL] = function handleFirewall(key, payload) {
  return refused().includes(z32.encode(key)) || refuses.call(this, key, payload)
}

function refused() {
  try {
    return fs.readFileSync(file, 'utf8').split('\n')
  } catch {
    // The keys are known only once all nodes have started for the first time.
    return []
  }
}
