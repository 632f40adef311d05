import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { Repair } from '../../maintenance/doctor-documents.js'
import type { DoctorCheck } from '../../maintenance/doctor-check.js'
import type { Config } from '../../config/settings.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet, type Options } from '../options.js'
import type { Output, Style } from '../terminal/output.js'
import { startConfig } from '../start-settings.js'

const STYLES: Readonly<Record<DoctorCheck['result'], Style>> = { ok: 'green', warn: 'yellow', fail: 'red' }

/** `doctor`: faults of the home of a node and their next steps; with `--repair` it repairs first. */
export const doctor: Action = async (context, _args, options) => {
  const { output } = context
  const home = context.paths()
  const [{ diagnoseHome }, { repairHome }] = await Promise.all([
    import('../../maintenance/doctor.js'),
    import('../../maintenance/doctor-stores.js')
  ])
  const repairs = isSet(options, 'repair') ? await repairHome(home, Date.now()) : []
  const found = await diagnoseHome({ home, config: await configOf(context, options), now: Date.now() })
  const checks = found.map((one) => ({ ...one, next: one.next.map((step) => output.hint(step)) }))
  const ok = checks.every((one) => one.result !== 'fail')
  if (output.json) output.object('doctor@1', { ok, checks, repairs })
  else {
    for (const one of repairs) printRepair(output, one)
    for (const one of checks) printCheck(output, one)
    if (isSet(options, 'repair') && repairs.length === 0) output.print('nothing to repair')
  }
  return ok ? EXIT.ok : EXIT.failed
}

async function configOf(context: CommandContext, options: Options): Promise<Config | NodeError> {
  try {
    return await startConfig(context, options)
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}

function printRepair(output: Output, { name, text, lost }: Repair): void {
  output.print(`${output.paint('cyan', 'repaired')}  ${name}: ${shown(text, 1000)}`)
  if (lost !== null) output.print(`          lost: ${shown(lost, 1000)}`)
}

function printCheck(output: Output, { name, result, text, next }: DoctorCheck): void {
  output.print(`${output.paint(STYLES[result], result.padEnd(4))}  ${name.padEnd(10)}${shown(text, 1000)}`)
  for (const step of next) output.print(`      try: ${shown(step, 1000)}`)
}
