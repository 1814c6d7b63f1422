internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// The server's end, on a disk and with a clock of its own: two handlers over one feed, which
/// answer in turn and know of each other by the feed alone.
final class SimulatedServer {
  static let path = "/feed"
  /// Thirty days.
  static let leaseSeconds: UInt32 = 30 * 86_400

  /// The feed of a run.
  enum Kind { case store, memory, sql }

  let kind: Kind
  let clock: ManualClock
  var disk: SimulatedFileSystem
  private(set) var feed: SimulatedFeed
  private(set) var handlers: [SyncHandler]
  /// Counts the times that it was opened.
  private(set) var boots = 0
  private var calls = 0
  /// The last page of each handler, which the next caller may get as well.
  private var pages: [Int: StagedAnswer] = [:]
  var limits: SyncLimits
  /// Which changes are refused.
  var validator = 0
  /// Copies of the disk, with what was known of the feed then.
  var copies: [(disk: DiskSnapshot, feed: SimulatedFeed, line: FeedLine)] = []
  var survival = Survival.loseAll

  init(
    _ kind: Kind, clock: ManualClock, disk: SimulatedFileSystem, limits: SyncLimits, random: UInt64
  ) throws(TidemarkError) {
    self.kind = kind
    self.clock = clock
    self.disk = disk
    self.limits = limits
    feed = try SimulatedFeed.open(nil, kind, disk, clock, random)
    handlers = try Self.handlers(feed, Self.options(limits, 0))
  }

  private static func options(_ limits: SyncLimits, _ validator: Int) -> SyncHandler.Options {
    let refusal = SyncRejection(code: "bad", message: "not here")
    let validators: [SyncValidator] =
      switch validator {
      case 0: []
      case 1:
        [
          SyncValidator { change, _ in
            change.content.value.starts(with: Array("bad".utf8)) ? refusal : nil
          }
        ]
      default:
        [
          SyncValidator(prefix: "c") { change, _ in
            change.content.value.count > 50 ? refusal : nil
          }
        ]
      }
    return SyncHandler.Options(
      limits: limits, lease: .seconds(leaseSeconds), validators: validators)
  }

  private static func handlers(
    _ feed: SimulatedFeed, _ options: SyncHandler.Options
  ) throws(TidemarkError) -> [SyncHandler] {
    [
      try SyncHandler(feed: feed.feed, options: options),
      try SyncHandler(feed: feed.feed, options: options),
    ]
  }

  private static let coder = WireCoder(limit: WireFrame.largestLimit)

  /// The handler whose turn it is.
  var handler: SyncHandler { handlers[calls % handlers.count] }

  /// Opens the feed that the disk has.
  /// - Parameter former: the one before, or of a copy; nil begins with nothing.
  func open(after former: SimulatedFeed?, random: UInt64) throws(TidemarkError) {
    boots += 1
    pages = [:]
    feed = try SimulatedFeed.open(former, kind, disk, clock, random)
    handlers = try Self.handlers(feed, Self.options(limits, validator))
  }

  /// Opens it again as it was left.
  func open(random: UInt64) throws(TidemarkError) { try open(after: feed, random: random) }

  /// An answer that may go out once it is settled.
  struct Staged {
    var boot: Int
    var handler: SyncHandler
    var answer: StagedAnswer
  }

  /// Makes the answer to a call.
  func stage(_ call: WireMessage, _ access: SyncAccess) -> Result<Staged, PeerError> {
    calls += 1
    let turn = calls % handlers.count
    let handler = handlers[turn]
    do throws(PeerError) {
      let answer = try handler.stage(call, access: access, sharing: pages[turn])
      if case .pullAnswer = answer.message { pages[turn] = answer }
      return .success(Staged(boot: boots, handler: handler, answer: answer))
    } catch { return .failure(error) }
  }

  /// Waits until an answer may go out.
  /// - Throws: ``BrokenPromise`` when it may not, and would.
  func settle(_ staged: Staged) throws -> Result<WireMessage, PeerError> {
    do throws(PeerError) { try staged.handler.settle(staged.answer) } catch {
      return .failure(error)
    }
    // The frame of a page has entries that were encoded for somebody else, perhaps.
    let message: WireMessage
    do throws(PeerError) {
      message = try Self.coder.decode(try staged.answer.frame(Self.coder))
    } catch { throw BrokenPromise("an answer cannot travel: \(error.message)") }
    guard message == staged.answer.message.normalized else {
      throw BrokenPromise("the frame of an answer holds another one")
    }
    let durable = try feed.feed.look(FeedQuestion()).durable
    guard let range = message.range else { return .success(message) }
    guard range.head <= durable else {
      throw BrokenPromise(
        "an answer tells of offset \(range.head), and the disk has \(durable)")
    }
    return .success(message)
  }
}
