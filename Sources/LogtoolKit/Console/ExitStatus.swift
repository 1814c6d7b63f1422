internal import TidemarkEngine
internal import TidemarkSync

/// How the tool ends; the numbers follow `sysexits.h` where that has one.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  /// Not found, or failed in a way that has no number of its own.
  case failed = 1
  /// Damage or differences were found.
  case findings = 2
  case usage = 64
  case damaged = 65
  /// No such store, or not a store.
  case noStore = 66
  /// The peer cannot be reached now.
  case unavailable = 69
  /// Input or output failed; the disk is full.
  case inputOutput = 74
  /// Another process writes to the store.
  case locked = 75
  /// The store has another version of the format.
  case otherFormat = 76
  case noPermission = 77
  case interrupted = 130

  /// The status that an error of the store ends the tool with.
  init(_ error: TidemarkError) {
    self =
      switch error.code {
      case .storeMissing, .notAStore: .noStore
      // A build without encryption stands before an encrypted store as before a newer format.
      case .formatTooNew, .formatTooOld, .encryptionUnavailable: .otherFormat
      case .locked, .busy: .locked
      case .damaged, .possiblyStale: .damaged
      case .noSpace, .unknownOutcome, .poisoned, .inputOutput: .inputOutput
      case .invalidArgument, .notEncrypted: .usage
      // Nothing is wrong with the data: whoever asks is not the one who may read it.
      case .permissionDenied, .keyMissing, .wrongKey: .noPermission
      default: .failed
      }
  }
}

extension ExitStatus {
  /// The status that a failure of a peer ends the tool with.
  init(_ error: PeerError) {
    self =
      switch error.kind {
      case .unavailable, .busy: .unavailable
      case .unauthorized, .forbidden: .noPermission
      case .cursorGone, .leaseExpired, .malformed, .failed: .failed
      }
  }
}

/// Why a command ends early: the status, and one line for the user.
package struct ToolError: Error, Sendable, Hashable {
  package var status: ExitStatus
  /// The reason and what to do; empty when there is nothing more to say.
  package var message: String

  package init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The reader of the output has gone: nothing is wrong, and there is nothing more to do.
  static let outputClosed = ToolError(.done, "")

  /// Ends with a status after everything has been said.
  static func silent(_ status: ExitStatus) -> ToolError { ToolError(status, "") }
}
