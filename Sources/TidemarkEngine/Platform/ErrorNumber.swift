#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

// SAFETY: `strerror` gives a C string that is copied at once.

/// The system's error numbers (`errno`) that the engine tells apart.
package enum ErrorNumber {
  package static let noEntry = ENOENT
  package static let exists = EEXIST
  package static let noSpace = ENOSPC
  package static let quotaExceeded = EDQUOT
  package static let inputOutput = EIO
  package static let accessDenied = EACCES
  package static let notPermitted = EPERM
  package static let readOnlyFileSystem = EROFS
  package static let tooManyOpenFiles = EMFILE
  package static let tooManyOpenFilesInSystem = ENFILE
  package static let notADirectory = ENOTDIR
  package static let isADirectory = EISDIR
  package static let directoryNotEmpty = ENOTEMPTY
  package static let badDescriptor = EBADF
  package static let invalidArgument = EINVAL
  package static let fileTooLarge = EFBIG
  /// A number that no system has: the store is suspended or closed, see ``ClosableFileSystem``.
  package static let suspended = Int32.min

  /// The system's words for an error number.
  package static func text(_ number: Int32) -> String {
    guard let words = unsafe strerror(number) else { return "error \(number)" }
    return unsafe String(cString: words)
  }
}

extension TidemarkError {
  /// An error from the file system, in the terms of the store.
  /// - Parameters:
  ///   - error: what the file system threw.
  ///   - task: what was being done, as in "while reading the manifest"; without the "while".
  package init(_ error: FileSystemError, while task: String) {
    let reason = "\(ErrorNumber.text(error.number)), in \(error.operation.rawValue)"
    switch error.number {
    case ErrorNumber.suspended:
      self.init(.suspended, "the store is suspended; call resume()", cause: error)
    // Suspending or closing a store closes its files, and calls on a closed file give this number.
    case ErrorNumber.badDescriptor:
      self.init(
        .suspended,
        "the file was closed when the store was suspended or closed; resume it and open the file "
          + "again (while \(task))", cause: error)
    case ErrorNumber.noSpace, ErrorNumber.quotaExceeded:
      self.init(
        .noSpace,
        "the disk is full; free space and try again (while \(task): \(reason) of \(error.path))",
        cause: error)
    case ErrorNumber.readOnlyFileSystem:
      self.init(
        .permissionDenied,
        "the file system of \(error.path) is read-only; make it writable, or open the store "
          + "read-only (while \(task): \(reason))", cause: error)
    case ErrorNumber.accessDenied, ErrorNumber.notPermitted:
      self.init(
        .permissionDenied,
        "no permission for \(error.path); grant it and open the store again "
          + "(while \(task): \(reason))", cause: error)
    case ErrorNumber.tooManyOpenFiles, ErrorNumber.tooManyOpenFilesInSystem:
      self.init(
        .inputOutput,
        "too many open files; raise the limit (ulimit -n) and try again "
          + "(while \(task): \(reason) of \(error.path))", cause: error)
    default:
      self.init(
        .inputOutput,
        "the system failed at \(error.path); check the disk and open the store again "
          + "(while \(task): \(reason))", cause: error)
    }
  }

  /// Gives any error the library's type; an error that has it already stays as it is.
  /// - Parameter task: what was being done, for the message of an error of the file system.
  init(wrapping error: any Error, while task: String) {
    switch error {
    case let error as TidemarkError: self = error
    case let error as FileSystemError: self.init(error, while: task)
    default: self.init(.inputOutput, "failed while \(task)", cause: error)
    }
  }

  /// Whether bytes are damaged or the disk cannot read them (`EIO`). Other bytes can still be read,
  /// so verification and repair note the place and go on; any other error ends them.
  package var isDamage: Bool {
    code == .damaged || (cause as? FileSystemError)?.isUnreadable == true
  }
}

extension FileSystemError {
  /// Whether the disk cannot read bytes that it should have (`EIO`), unlike a missing file.
  package var isUnreadable: Bool { number == ErrorNumber.inputOutput }
  /// Whether the disk, or what the user may take of it, is full.
  var isDiskFull: Bool { [ErrorNumber.noSpace, ErrorNumber.quotaExceeded].contains(number) }
}
