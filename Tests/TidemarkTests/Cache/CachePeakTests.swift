import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

/// A disk that knows the most that it ever held, also for a moment.
final class PeakDisk: ForwardingDisk, Sendable {
  let disk = SimulatedFileSystem(seed: 1)
  private let most = Lock(0)

  var base: any FileSystem { disk }
  var peak: Int { most.withLock { $0 } }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    PeakFile(base: try disk.open(path, mode), disk: self)
  }

  fileprivate func look() {
    let now = disk.usedBytes
    most.withLock { $0 = max($0, now) }
  }
}

private final class PeakFile: ForwardingFile, Sendable {
  let base: any File
  private let disk: PeakDisk

  init(base: any File, disk: PeakDisk) { (self.base, self.disk) = (base, disk) }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    defer { disk.look() }
    return try base.write(bytes, at: offset)
  }

  func allocate(to length: Int) throws(FileSystemError) {
    defer { disk.look() }
    try base.allocate(to: length)
  }
}

@Suite("Caches: the most that their directory takes at any moment", .timeLimit(.minutes(20)))
struct CachePeakTests {
  /// The kind and length of contents.
  enum Content: CaseIterable {
    case tiny, small, medium, large, mixed, smallAttachments, attachments

    func bytes(_ chance: inout SeededGenerator) -> Int {
      switch self {
      case .tiny: 8
      case .small: 200
      case .medium: 5_000
      case .large, .attachments: 100_000
      case .mixed: chance.int(in: 0..<3) == 0 ? chance.int(in: 0..<60_000) : 700
      case .smallAttachments: 3_000
      }
    }

    var isAttached: Bool { self == .attachments || self == .smallAttachments }

    var bound: Int {
      switch self {
      case .tiny, .small, .smallAttachments: 6 << 20
      default: 24 << 20
      }
    }
  }

  /// Fills a cache over two launches.
  /// - Parameter keys: most keys that are written; then each is written again.
  private func fill(_ content: Content, keys: Int = .max, usesThreads: Bool = false) async throws {
    let disk = PeakDisk()
    let clock = ManualClock()
    var chance = SeededGenerator(seed: 7)
    let bound = content.bound
    var number = 0
    for _ in 0..<2 {
      let store = try Store.openBlocking(
        at: "store",
        configuration: Store.Configuration(
          access: .create,
          environment: Store.Environment(
            fileSystem: disk, clock: clock, random: SeededRandom(seed: 2)),
          usesThreads: usesThreads))
      let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: nil, bytes: bound))
      var written = 0
      while written < bound * 3 / 2 {
        let bytes = chance.bytes(content.bytes(&chance))
        let key = "\(number % keys)"
        if content.isAttached {
          let staged = try await store.attach(bytes)
          try await cache.put(key, Array("{}".utf8), attachment: staged)
        } else {
          try await cache.put(key, bytes)
        }
        written += bytes.count + 100
        number += 1
        if number % 8 == 0 { clock.advance(by: .milliseconds(100)) }
      }
      try await store.close()
    }
    #expect(disk.peak > bound / 4 * 3)
    #expect(disk.peak <= bound + bound / 4 + (8 << 20), "\(content): \(disk.peak >> 10) KiB")
  }

  @Test(
    "no write takes a bounded cache's directory beyond its bound, a quarter more and 8 MiB",
    arguments: Content.allCases)
  func peak(content: Content) async throws { try await fill(content) }

  @Test("the same holds where the same keys are written again and again", arguments: [0.6, 0.9])
  func overwritten(share: Double) async throws {
    try await fill(.medium, keys: Int(Double(Content.medium.bound) * share) / 5_000)
  }

  @Test(
    "the same holds for who writes faster than is compacted in the background",
    arguments: [Content.medium, .large, .mixed])
  func threads(content: Content) async throws { try await fill(content, usesThreads: true) }
}
