internal import TidemarkTestKit

/// Makes up the events of scripts.
struct SyncScriptGenerator {
  private let seed: UInt64
  var generator: SeededGenerator
  let profile: SyncProfile
  private let choices: [(kind: SyncEvent.Kind, weight: Int)]
  private let totalWeight: Int
  var devices = 3
  var number: UInt64 = 0

  init(seed: UInt64, profile: SyncProfile? = nil) {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    let profile = profile ?? .picked(by: seed)
    self.profile = profile
    choices = SyncEvent.Kind.allCases.map { ($0, max(0, profile.weights[$0] ?? 0)) }
    totalWeight = choices.reduce(0) { $0 + $1.weight }
  }

  private static let openings = 0.25

  mutating func script(_ count: Int) -> SyncScript {
    devices = generator.pick([2, 3, 3, 3, 3, 4]) ?? 3
    let batch = generator.pick([1, 3, 7, 20, 4000, 4000]) ?? 4000
    let bytes = generator.pick([300, 4000, 256 << 10, 256 << 10]) ?? 4000
    var events: [SyncEvent] = []
    if let opening = profile.opening, generator.chance(Self.openings) {
      events += self.events(of: opening)
    }
    while events.count < count {
      if profile.storyShare > 0, generator.chance(profile.storyShare),
        let story = generator.pick(profile.stories)
      {
        events += self.events(of: story)
      } else {
        events.append(next())
      }
    }
    events.removeLast(events.count - max(0, count))
    // A seed picks its profile by the remainder; every profile meets every server.
    let kinds = seed / UInt64(SyncProfile.everyKind.count)
    var server = Int(kinds % 4)
    if server & 1 == 1, kinds / 4 % 2 == 1 { server |= 4 }
    // A feed in memory keeps no content of attachments.
    if profile.attachments > 0 { server &= 2 }
    return SyncScript(
      seed: seed, devices: devices, batch: batch, batchBytes: bytes, server: server,
      events: events)
  }

  private mutating func pickKind() -> SyncEvent.Kind {
    var left = generator.int(below: totalWeight)
    for choice in choices {
      if left < choice.weight { return choice.kind }
      left -= choice.weight
    }
    return .write
  }

  mutating func index(below bound: Int) -> UInt64 { UInt64(generator.int(below: bound)) }

  mutating func someDevice() -> Int { generator.int(below: devices) }

  /// Nil for the server.
  private mutating func sufferer() -> Int? {
    generator.chance(profile.serverShare) ? nil : someDevice()
  }

  private mutating func next() -> SyncEvent {
    let kind = pickKind()
    switch kind {
    case .write, .durableWrite:
      return SyncEvent(kind, device: someDevice(), writes: writes())
    case .fill:
      number += 1000
      return SyncEvent(kind, device: someDevice(), [number, 1 + index(below: 30)])
    case .call, .giveUp, .partition, .heal: return SyncEvent(kind, device: someDevice())
    case .deliver, .drop, .duplicate: return SyncEvent(kind, [index(below: 1000)])
    case .exchange: return SyncEvent(kind, device: someDevice(), [1 + index(below: 8)])
    case .kill, .reopen, .backUp, .compact, .dropHistory, .run:
      return SyncEvent(kind, device: sufferer())
    case .powerCut: return SyncEvent(kind, device: sufferer(), [index(below: 1_000_000)])
    case .fuse:
      return SyncEvent(
        kind, device: sufferer(), [1 + index(below: 24), index(below: 1_000_000)])
    case .restore: return SyncEvent(kind, device: sufferer(), [index(below: 1000)])
    case .clone: return SyncEvent(kind, device: someDevice())
    case .anew: return SyncEvent(kind)
    case .advance:
      let seconds =
        generator.chance(0.5)
        ? generator.int(in: 1...100) : generator.int(below: profile.longestAbsence)
      return SyncEvent(kind, [UInt64(seconds)])
    // Forward by up to a month, or back: by what is above a million.
    case .jump:
      let seconds = index(below: generator.chance(0.5) ? 120 : 900_000)
      return SyncEvent(
        kind, device: sufferer(), [seconds + (generator.chance(0.5) ? 1_000_000 : 0)])
    case .policy: return SyncEvent(kind, [index(below: 4), index(below: 3)])
    case .validator: return SyncEvent(kind, [index(below: 3)])
    case .scope: return SyncEvent(kind, device: someDevice(), [index(below: 6)])
    case .reach: return SyncEvent(kind, device: someDevice(), [index(below: 6)])
    case .resolver: return SyncEvent(kind, device: someDevice(), [index(below: 9)])
    case .direction: return SyncEvent(kind, device: someDevice(), [index(below: 4)])
    case .cachePut, .cacheRead, .cacheTouch, .cacheStale, .cacheRemove, .cacheExpire:
      return cacheEvent(kind)
    }
  }

  private mutating func writes() -> [SyncWrite] {
    if generator.chance(0.03) {
      let key = key()
      return [write(.put, key), SyncWrite(.delete, key), write(.put, key)]
    }
    guard generator.chance(profile.batches) else { return [write()] }
    return (0..<generator.int(in: 2...6)).map { _ in write() }
  }

  mutating func key() -> String {
    if profile.cacheKeys > 0, generator.chance(0.2) { return cacheKey() }
    return plainKey()
  }

  private mutating func plainKey() -> String {
    generator.chance(0.6) || profile.coldKeys == 0
      ? ["h", "j", "l"][generator.int(below: 3)] + "\(generator.int(below: profile.hotKeys))"
      : "c\(generator.int(below: profile.coldKeys))"
  }

  private mutating func write() -> SyncWrite {
    let key = key()
    switch generator.int(below: 100) {
    case 0..<20: return SyncWrite(.delete, key)
    case 20..<23: return SyncWrite(.touch, key)
    case 23..<28: return write(.bad, key)
    case 28..<31: return write(.same, key)
    default:
      if key.hasPrefix("j") { return write(.edit, key) }
      let isAttached = profile.attachments > 0 && generator.chance(profile.attachments)
      return write(isAttached ? .attach : .put, key)
    }
  }

  mutating func write(_ kind: SyncWrite.Kind, _ key: String) -> SyncWrite {
    number += 1
    var size = generator.int(below: 60)
    if generator.chance(0.05) { size = generator.int(below: 3000) }
    let labels = generator.pick(["-", "a", "a", "b", "ab", "c"]) ?? "-"
    return SyncWrite(kind, key, number: number, size: size, labels: labels)
  }
}
