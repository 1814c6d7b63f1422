internal import TidemarkTestKit

/// Events of the caches that stand beside what is replicated.
extension SyncScriptGenerator {
  /// A key below the prefix of caches.
  mutating func cacheKey() -> String {
    "\(SimulatedDevice.cachePrefix)\(generator.int(below: max(1, profile.cacheKeys)))"
  }

  mutating func cacheEvent(_ kind: SyncEvent.Kind) -> SyncEvent {
    let device = someDevice()
    guard kind != .cacheExpire else {
      return SyncEvent(kind, device: device, [index(below: 1000)])
    }
    let key = index(below: max(1, profile.cacheKeys))
    switch kind {
    case .cachePut:
      number += 1
      let size = generator.chance(0.1) ? index(below: 400) : index(below: 60)
      let event = SyncEvent(kind, device: device, [key, number, size, age()])
      guard generator.chance(0.15) else { return event }
      // A user's write goes with it, or neither does.
      return SyncEvent(kind, device: device, event.numbers, writes: [write(.put, self.key())])
    case .cacheTouch: return SyncEvent(kind, device: device, [key, age()])
    default: return SyncEvent(kind, device: device, [key])
    }
  }

  /// An age in seconds and one; 0 for the policy's.
  private mutating func age() -> UInt64 {
    generator.chance(0.5) ? 0 : 1 + index(below: generator.chance(0.3) ? 1 : 400)
  }
}
