internal import Tidemark
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// An intruder with a token of its own tries to learn by calls of every kind what lies outside of
/// it: it knows the replicas, the keys and the hashes of somebody else, the owner.
///
/// Two handlers, the twins, are told the same by the owner, but for what lies outside of the
/// intruder's reach: there each has keys, values and content of its own. The intruder calls both
/// with what it knows of the first one. An answer that differs tells something, be it only that
/// something exists.
@_spi(Campaigns) public struct ReachTrial: Sendable {
  /// Decides everything.
  public var seed: UInt64
  /// How many calls are made, of which the intruder makes three of four.
  public var calls: Int

  /// A trial.
  public init(seed: UInt64, calls: Int = 1_000) {
    self.seed = seed
    self.calls = calls
  }

  /// Runs it.
  /// - Returns: how often which calls were made, and came to something.
  /// - Throws: ``ReachLeak`` when the intruder was told something, or could take something away.
  public func run() throws(ReachLeak) -> SyncSimulationReport {
    var call = 0
    do {
      let world = try ReachWorld(seed: seed)
      while call < calls {
        if world.random.int(below: 4) == 0 { try world.ownerCalls() } else { try world.intrude() }
        call += 1
      }
      return world.report
    } catch { throw ReachLeak(message: "seed \(seed), call \(call + 1): \(error)") }
  }
}

/// The intruder was told something that lies outside of its reach.
@_spi(Campaigns) public struct ReachLeak: Error, CustomStringConvertible {
  /// Says how to run the trial again, and what the two servers answered: seed, call, answers.
  public var message: String

  /// The ``message``: how to run the trial again, and what the two servers answered.
  public var description: String { message }
}

/// The part of the owner's data that the intruder must not learn, as one of the twins has it.
struct ReachSecrets {
  static let count = 24

  private(set) var keys: [[UInt8]] = []
  private(set) var contents: [[UInt8]] = []
  private(set) var names: [AttachmentReference] = []

  init(seed: UInt64, twin: Int) {
    var random = SeededGenerator(seed: seed &* 2 &+ UInt64(twin))
    for number in 0..<Self.count {
      keys.append(Array("a/".utf8) + random.bytes(8))
      // As many pieces in both twins.
      let length = [30, 100, 66_000, 131_000, 270_000][number % 5] + 7 * twin
      contents.append(random.bytes(length))
      names.append(SyncContent.name(of: contents[number]))
    }
  }
}

/// One of the twins.
final class ReachTwin {
  let secrets: ReachSecrets
  let handler: SyncHandler

  init(seed: UInt64, twin: Int, clock: ManualClock) throws {
    secrets = ReachSecrets(seed: seed, twin: twin)
    // Everything else by chance is the same.
    let environment = Store.Environment(
      fileSystem: SimulatedFileSystem(seed: seed), clock: clock, random: SeededRandom(seed: seed))
    var options = SyncHandler.Options()
    // The intruder alone would begin more.
    options.attachmentUploads = 40
    handler = try SyncHandler(
      at: "/feed",
      configuration: Store.Configuration(environment: environment, usesThreads: false),
      options: options)
  }
}
