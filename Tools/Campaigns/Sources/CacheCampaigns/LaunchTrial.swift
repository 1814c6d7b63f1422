import Tidemark
import TidemarkTestKit

/// A store that only caches, opened and closed again and again: its directory stays within 1.25
/// times its bounds and 8 MiB, whatever is put into it.
struct LaunchTrial {
  private var chance: SeededGenerator

  init(_ chance: SeededGenerator) { self.chance = chance }

  /// Room besides a quarter of the bounds, in bytes.
  private static let slack = 8 << 20

  /// - Parameter launches: how often the store is opened.
  func run(_ launches: Int) async throws -> [String: Int] {
    var chance = chance
    let disk = SimulatedFileSystem(seed: chance.next())
    let clock = ManualClock()
    let bound = chance.pick([256 << 10, 1 << 20, 3 << 20]) ?? 0
    let size = chance.pick([300, 20_000, 150_000]) ?? 0
    let attaches = chance.chance(0.5)
    let limit = bound + bound / 4 + Self.slack
    var counts: [String: Int] = [:]
    for launch in 0..<launches {
      let store = try await Store.open(
        at: "store",
        configuration: Store.Configuration().simulated(
          on: disk, clock: clock, random: SeededRandom(seed: chance.next())))
      let cache = try store.cache(prefix: "c/", policy: CachePolicy(bytes: bound))
      let count = min(400, 4 << 20 / size)
      for number in 0..<count {
        clock.advance(by: .seconds(1))
        let bytes = chance.bytes(size)
        let attachment = attaches ? try await store.attach(bytes) : nil
        try await cache.put(
          "\(launch)/\(number)", attaches ? Array("\(number)".utf8) : bytes, attachment: attachment)
        counts["put", default: 0] += 1
        if number % 16 == 0 { try check(disk, limit, "in launch \(launch)", size, attaches) }
      }
      if chance.chance(0.1) {
        try await cache.removeAll()
        counts["removeAll", default: 0] += 1
      }
      try await store.close()
      try check(disk, limit, "after launch \(launch)", size, attaches)
      counts["launch", default: 0] += 1
    }
    return counts
  }

  private func check(
    _ disk: SimulatedFileSystem, _ limit: Int, _ moment: String, _ size: Int, _ attaches: Bool
  ) throws {
    var bytes = 0
    for path in disk.files() { bytes += disk.contents(of: path)?.count ?? 0 }
    guard bytes > limit else { return }
    throw CacheViolation(
      "\(moment) the directory has \(bytes) bytes, at most \(limit) are allowed; "
        + "\(attaches ? "attachments" : "values") of \(size) bytes")
  }
}
