/// A failure inside the index, or one that the caller is to see.
enum IndexOrStoreError: Error {
  case index(IndexError)
  case store(TidemarkError)

  /// Whether a run of the index is damaged, so that the index is to be made without it.
  var voidsImage: Bool {
    if case .index(let error) = self { error.voidsImage } else { false }
  }
}

extension IndexError {
  var voidsImage: Bool {
    switch self {
    case .imageDamaged, .imageInvalid: true
    case .fileSystem, .limitExceeded: false
    }
  }
}

extension TidemarkError {
  /// An engine that is put to sleep must not answer what somebody else may be changing.
  static var suspended: TidemarkError {
    TidemarkError(.suspended, "the store is suspended; call resume()")
  }

  /// Nothing can be written after an error of which the outcome is unknown.
  static func poisoned(by error: TidemarkError) -> TidemarkError {
    TidemarkError(
      .poisoned,
      "an earlier write ended with an unknown outcome; close and reopen the store "
        + "(\(words(for: error.cause ?? error)))",
      cause: error)
  }

  /// A write or sync that failed midway.
  static func unknownOutcome(_ reason: String, _ cause: any Error) -> TidemarkError {
    TidemarkError(
      .unknownOutcome,
      "\(reason); whether the last writes are kept shows when the store is reopened "
        + "(\(words(for: cause)))",
      cause: cause)
  }

  /// What the index says of a key is not certain.
  /// - Parameter below: see `ReadState.staleBelow`.
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

  /// A sequence that is somebody else's by now.
  static func lostBeforeSync(_ sequence: UInt64) -> TidemarkError {
    TidemarkError(
      .unknownOutcome,
      "the store was suspended before the entry was on the disk, and resumed without it",
      sequences: sequence...sequence)
  }

  /// The system's own words, below everything that was made of them.
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
    case .fileSystem(let error): self.init(error, while: "using the index image")
    case .limitExceeded:
      self.init(.limitExceeded, "the index is full: too many keys or sets of labels")
    default: self.init(.damaged, "the index image is damaged", cause: error)
    }
  }
}
