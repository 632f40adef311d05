// Preloaded into the nodes of a soak: at SIGUSR2 it writes how many timers wait to the file of SOAK_PROBE.
import fs from 'node:fs'

process.on('SIGUSR2', () => {
  const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'Immediate').length
  fs.writeFileSync(`${process.env.SOAK_PROBE}.tmp`, String(timers))
  fs.renameSync(`${process.env.SOAK_PROBE}.tmp`, process.env.SOAK_PROBE)
})
