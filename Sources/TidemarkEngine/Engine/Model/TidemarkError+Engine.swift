/// An error of the index, which rebuilding it from the log may cure, or one for the caller.
enum IndexOrStoreError: Error {
  case index(IndexError)
  case store(TidemarkError)

  /// Whether a sorted run of the index is damaged, so that the index must be rebuilt.
  var voidsRun: Bool {
    if case .index(let error) = self { error.voidsRun } else { false }
  }
}

extension IndexError {
  var voidsRun: Bool {
    switch self {
    case .runDamaged, .runInvalid: true
    case .fileSystem, .limitExceeded: false
    }
  }
}

extension TidemarkError {
  /// A suspended engine has given up its lock: another process may be changing the store.
  static var suspended: TidemarkError {
    TidemarkError(.suspended, "the store is suspended; call resume()")
  }

  /// Refuses writes after one with an unknown outcome: only reopening finds out what the log holds.
  static func poisoned(by error: TidemarkError) -> TidemarkError {
    TidemarkError(
      .poisoned,
      "an earlier write ended with an unknown outcome; close and reopen the store "
        + "(\(words(for: error.cause ?? error)))",
      cause: error)
  }

  /// The error of the write or sync that failed midway: its entries may or may not be kept.
  static func unknownOutcome(_ reason: String, _ cause: any Error) -> TidemarkError {
    TidemarkError(
      .unknownOutcome,
      "\(reason); whether the last writes are kept shows when the store is reopened "
        + "(\(words(for: cause)))",
      cause: cause)
  }

  /// Refuses a read that damage may falsify.
  /// - Parameter below: the index may lack entries below this; see ``ReadState/uncertainBelow``.
  static func possiblyStale(_ below: UInt64) -> TidemarkError {
    guard below < .max else {
      return TidemarkError(
        .poisoned,
        "a batch failed midway, and the index could not be made anew without it; close and reopen "
          + "the store")
    }
    return TidemarkError(
      .possiblyStale,
      "the key may have been written in a damaged part of the log; repair into a new store",
      sequences: 1...max(1, below - 1))
  }

  /// The message of the innermost error, which is the system's if there is one.
  private static func words(for cause: any Error) -> String {
    switch cause {
    case let error as FileSystemError:
      "\(ErrorNumber.text(error.number)), in \(error.operation.rawValue) of \(error.path)"
    case let error as TidemarkError:
      if let deeper = error.cause as? FileSystemError { words(for: deeper) } else { error.message }
    default: "\(cause)"
    }
  }

  init(_ error: IndexOrStoreError) {
    switch error {
    case .index(let error): self.init(error)
    case .store(let error): self = error
    }
  }

  init(_ error: LogReadError, while action: String = "writing to the log") {
    switch error {
    case .system(let error): self.init(error, while: action)
    case .format(let error): self.init(.limitExceeded, error.reason, cause: error)
    }
  }

  init(_ error: IndexError) {
    switch error {
    case .fileSystem(let error): self.init(error, while: "using the sorted run")
    case .limitExceeded:
      self.init(.limitExceeded, "the index is full: too many keys or sets of labels")
    default: self.init(.damaged, "the sorted run is damaged", cause: error)
    }
  }
}
