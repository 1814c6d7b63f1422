internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkTestKit

/// The server's end, on a disk and with a clock of its own.
final class SimulatedServer {
  static let path = "/feed"
  /// Thirty days.
  static let leaseSeconds: UInt32 = 30 * 86_400

  let clock: ManualClock
  var disk: SimulatedFileSystem
  private(set) var engine: Engine
  private(set) var handler: SyncHandler
  var limits: SyncLimits
  /// Which changes are refused.
  var validator = 0
  /// Copies of the disk, with what was known of the feed then.
  var copies: [(disk: DiskSnapshot, line: FeedLine)] = []
  var survival = Survival.loseAll

  init(
    clock: ManualClock, disk: SimulatedFileSystem, limits: SyncLimits, random: UInt64
  ) throws(TidemarkError) {
    self.clock = clock
    self.disk = disk
    self.limits = limits
    (engine, handler) = try Self.open(disk, clock, Self.options(limits, 0), random)
  }

  private static func options(_ limits: SyncLimits, _ validator: Int) -> SyncHandler.Options {
    let refusal = Rejection(code: "bad", message: "not here")
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

  private static func open(
    _ disk: SimulatedFileSystem, _ clock: ManualClock, _ options: SyncHandler.Options,
    _ random: UInt64
  ) throws(TidemarkError) -> (Engine, SyncHandler) {
    let engine = try Engine.open(
      path, configuration: .campaign,
      environment: EngineEnvironment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: random)))
    return (engine, try SyncHandler(feed: try StoreFeed(engine), options: options))
  }

  func open(random: UInt64) throws(TidemarkError) {
    (engine, handler) = try Self.open(disk, clock, Self.options(limits, validator), random)
  }

  /// Answers a call.
  func answer(
    _ call: SyncSession.Call, _ access: SyncAccess
  ) -> Result<SyncSession.Answer, PeerError> {
    do throws(PeerError) {
      switch call {
      case .hello(let request):
        return .success(.hello(try handler.hello(request, access: access)))
      case .push(let request):
        return .success(.push(try handler.push(request, access: access)))
      case .pull(let request):
        return .success(.pull(try handler.pull(request, access: access)))
      case .values(let request):
        return .success(.values(try handler.values(request, access: access)))
      case .digest(let request):
        return .success(.digest(try handler.digest(request, access: access)))
      }
    } catch {
      return .failure(error)
    }
  }
}
