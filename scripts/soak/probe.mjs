// Preloaded into the nodes of a soak: at SIGUSR2 it writes what is alive in its process to the file of SOAK_PROBE: how
// many timers wait, and the heap once it was collected.
import fs from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collect()
  const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'Immediate').length
  const { heapUsed, external } = process.memoryUsage()
  fs.writeFileSync(
    `${process.env.SOAK_PROBE}.tmp`,
    JSON.stringify({ timers, heapMB: heapUsed / 1e6, externalMB: external / 1e6 })
  )
  fs.renameSync(`${process.env.SOAK_PROBE}.tmp`, process.env.SOAK_PROBE)
})
