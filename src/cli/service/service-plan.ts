import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { launchdPlist, type ServiceSpec, systemdUnit } from './units.js'

/** A command: program and arguments. */
export type ServiceCommand = readonly string[]

/** The machine on which a service is installed. */
export interface ServiceHost {
  readonly platform: NodeJS.Platform
  /** Home directory of the user. */
  readonly userHome: string
  /** Base directory of configuration, `~/.config`. */
  readonly configHome: string
  readonly uid: number
  /** systemd runs as the first process. */
  readonly hasSystemd: boolean
}

/** How a service manager runs one service: its file, and the commands around it. */
export interface ServicePlan {
  readonly manager: 'systemd' | 'launchd'
  readonly file: string
  readonly text: string
  /** Checks the file before it is in use; skipped where the program is missing. */
  readonly verify: ServiceCommand
  readonly install: readonly ServiceCommand[]
  /** Commands whose failure leaves a service that works with a limitation. */
  readonly optional: readonly ServiceCommand[]
  readonly uninstall: readonly ServiceCommand[]
  /** After the file is removed. */
  readonly forget: readonly ServiceCommand[]
  /** Exits 0 when the service runs. */
  readonly isActive: ServiceCommand
}

/** The directories for files of services: of the user, and of the machine. */
export interface ServiceDirs {
  readonly user: string
  readonly system: string
}

/** The directories for files of services, by the platform. */
export function serviceDirs({ platform, userHome, configHome }: ServiceHost): ServiceDirs {
  return platform === 'darwin'
    ? { user: path.join(userHome, 'Library', 'LaunchAgents'), system: '/Library/LaunchDaemons' }
    : { user: path.join(configHome, 'systemd', 'user'), system: '/etc/systemd/system' }
}

/**
 * The plan of a service on a machine.
 * @throws NodeError CONFLICT where neither systemd nor launchd runs; USAGE for a control character in a path
 */
export function servicePlan(spec: ServiceSpec, host: ServiceHost): ServicePlan {
  const words = [spec.program, spec.home ?? '', spec.path, spec.logFile]
  if (words.some((word) => /\p{Cc}/u.test(word)))
    throw new NodeError('USAGE', 'a path with a control character cannot be in a service file', { next: [] })
  if (host.platform === 'darwin') return launchd(spec, host)
  if (host.platform === 'linux' && host.hasSystemd) return systemd(spec, host)
  const cause =
    host.platform === 'linux'
      ? 'systemd does not run on this machine (no /run/systemd/system)'
      : `there is no support for the services of ${host.platform}`
  throw new NodeError('CONFLICT', `${cause}: let its own service manager run a2a-node start`, {
    next: ['a2a-node start --detach']
  })
}

function systemd(spec: ServiceSpec, host: ServiceHost): ServicePlan {
  // Of the words of a command, systemd takes no quotes in the first one.
  if (/["'\\$]/.test(spec.program))
    throw new NodeError(
      'USAGE',
      `systemd starts no program at ${spec.program}: move it to a path without quotes and $`,
      {
        next: []
      }
    )
  const isSystem = spec.account !== null
  const unit = `${spec.name}.service`
  const scope = isSystem ? [] : ['--user']
  const control = (...words: readonly string[]): ServiceCommand => ['systemctl', ...scope, ...words]
  const dir = serviceDirs(host)[isSystem ? 'system' : 'user']
  return {
    manager: 'systemd',
    file: path.join(dir, unit),
    text: systemdUnit(spec),
    verify: ['systemd-analyze', ...scope, 'verify', path.join(dir, unit)],
    install: [control('daemon-reload'), control('enable', '--now', unit)],
    optional: isSystem ? [] : [['loginctl', 'enable-linger']],
    uninstall: [control('disable', '--now', unit)],
    forget: [control('daemon-reload')],
    isActive: control('is-active', '--quiet', unit)
  }
}

function launchd(spec: ServiceSpec, host: ServiceHost): ServicePlan {
  const isSystem = spec.account !== null
  const file = path.join(serviceDirs(host)[isSystem ? 'system' : 'user'], `${spec.name}.plist`)
  const domain = isSystem ? 'system' : `gui/${host.uid}`
  return {
    manager: 'launchd',
    file,
    text: launchdPlist(spec),
    verify: ['plutil', '-lint', file],
    install: [['launchctl', 'bootstrap', domain, file]],
    optional: [],
    uninstall: [['launchctl', 'bootout', `${domain}/${spec.name}`]],
    forget: [],
    isActive: ['launchctl', 'print', `${domain}/${spec.name}`]
  }
}
