internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Does something whenever a store was written to, and holds its lock only while doing it, so that
/// the programs that write can.
struct StoreFollower {
  private static let poll = Duration.milliseconds(500)
  /// Ceiling of the random pause after many failures.
  private static let longestPause = Duration.seconds(60)

  private let access: StoreAccess
  private let console: Console

  init(_ path: String, _ console: Console) {
    access = StoreAccess(path, console)
    self.console = console
  }

  /// Runs until the user interrupts.
  func run(_ body: () throws -> Void) throws {
    var backoff = Self.newBackoff
    var seen: UInt64?
    var lastWords = ""
    while !console.isInterrupted() {
      var pause = Self.poll
      do {
        let now = try access.read { $0.lastSequence }
        if now != seen {
          try body()
          // The round's own writes are not news.
          seen = try access.read { $0.lastSequence }
        }
        backoff = Self.newBackoff
        lastWords = ""
      } catch {
        guard let words = Self.reasonToWait(error) else { throw error }
        if words != lastWords { console.warn("\(words); trying again") }
        lastWords = words
        pause += backoff.next(SystemRandom(), at: 0, retryAfter: nil).total
        // The peer's own wish, or what is left of the pause that the store has noted for it.
        pause += (error as? TidemarkError)?.peerError?.retryAfter ?? .zero
      }
      wait(pause)
    }
    throw ToolError.silent(.interrupted)
  }

  /// Why something failed that may work later; nil when it will not.
  private static func reasonToWait(_ error: any Error) -> String? {
    let cause = (error as? TidemarkError)?.peerError ?? error
    return switch cause {
    case let error as PeerError where ExitStatus(error) == .unavailable: error.message
    case let error as TidemarkError where error.code == .locked: error.message
    default: nil
    }
  }

  private static var newBackoff: Backoff { Backoff(first: poll, longest: longestPause) }

  private func wait(_ pause: Duration) {
    var left = Int(clamping: min(pause, Backoff.longestRequest).wholeMilliseconds)
    while left > 0, !console.isInterrupted() {
      SystemCalls.sleep(milliseconds: min(left, 100))
      left -= 100
    }
  }
}
