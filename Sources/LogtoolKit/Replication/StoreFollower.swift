internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Does something whenever a store was written to, and holds its lock only while doing it, so that
/// the programs that write can.
struct StoreFollower {
  private static let pollMilliseconds = 500
  /// The longest pause after failures.
  private static let longestPauseMilliseconds = 60_000

  private let access: StoreAccess
  private let console: Console

  init(_ path: String, _ console: Console) {
    access = StoreAccess(path, console)
    self.console = console
  }

  /// Runs until the user interrupts.
  func run(_ body: () throws -> Void) throws {
    var pause = Self.pollMilliseconds
    var seen: UInt64?
    var lastWords = ""
    while !console.isInterrupted() {
      do {
        let now = try access.read { $0.lastSequence }
        if now != seen {
          try body()
          // The round's own writes are not news.
          seen = try access.read { $0.lastSequence }
        }
        pause = Self.pollMilliseconds
        lastWords = ""
      } catch {
        guard let words = Self.reasonToWait(error) else { throw error }
        if words != lastWords { console.warn("\(words); trying again") }
        lastWords = words
        pause = min(pause * 2, Self.longestPauseMilliseconds)
      }
      wait(milliseconds: pause)
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

  private func wait(milliseconds: Int) {
    var left = milliseconds
    while left > 0, !console.isInterrupted() {
      SystemCalls.sleep(milliseconds: min(left, 100))
      left -= 100
    }
  }
}
