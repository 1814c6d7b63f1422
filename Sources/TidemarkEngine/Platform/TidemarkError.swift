/// The error that Tidemark throws: a code for programs, and a message that says what happened and
/// what to do.
///
/// Logs travel further than data should, so an error's text quotes no value. It names an object's
/// id or a key only where nothing else finds what is wrong: `coding` and `unsentChanges`.
public struct TidemarkError: Error, Sendable {
  /// The kind of failure. Later versions may add kinds, so keep a default branch in a `switch`.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the kind, such as `conflict`.
    public let description: String

    package init(_ description: String) { self.description = description }

    /// There is no store at the given path.
    public static let storeMissing = Code("storeMissing")
    /// The given path holds something that is not a store.
    public static let notAStore = Code("notAStore")
    /// A store was to be created where there is one already.
    public static let storeExists = Code("storeExists")
    /// A later version of the library wrote this store, in a format that this version cannot read.
    public static let formatTooNew = Code("formatTooNew")
    /// An earlier version of the library wrote this store, in a format that this version cannot
    /// read.
    public static let formatTooOld = Code("formatTooOld")
    /// Another process, or another open store of this one, writes to the store.
    public static let locked = Code("locked")
    /// Acknowledged data is damaged. ``TidemarkError/file``, ``TidemarkError/offset`` and
    /// ``TidemarkError/sequences`` say where.
    public static let damaged = Code("damaged")
    /// The key may have been written in a damaged part of the log, so the store cannot tell its
    /// newest value.
    public static let possiblyStale = Code("possiblyStale")
    /// The store no longer keeps the history that the call asked for.
    public static let historyGone = Code("historyGone")
    /// The cursor or view names entries that this store no longer has, after a crash or a restored
    /// copy.
    public static let historyDiverged = Code("historyDiverged")
    /// The disk is full, and nothing was committed. Writes work again when there is space.
    public static let noSpace = Code("noSpace")
    /// A write or sync failed midway. Only reopening the store tells whether the write was
    /// committed.
    public static let unknownOutcome = Code("unknownOutcome")
    /// The store refuses writes because an earlier one had an unknown outcome. Reopen the store, or
    /// suspend and resume it.
    public static let poisoned = Code("poisoned")
    /// An argument, such as a key, a value, a label or an option, is out of its bounds.
    public static let invalidArgument = Code("invalidArgument")
    /// A key was not in the state that the write's condition demands, so nothing was committed.
    /// ``TidemarkError/operation`` says which change of the batch set the condition.
    public static let conflict = Code("conflict")
    /// Another object already has a value that a unique index allows only once.
    public static let notUnique = Code("notUnique")
    /// No index of the collection serves the query, and the call did not allow a scan.
    public static let indexMissing = Code("indexMissing")
    /// A call of the operating system failed. ``TidemarkError/cause`` has the system's error where
    /// it is known.
    public static let inputOutput = Code("inputOutput")
    /// A value cannot be encoded to bytes, or decoded from them. For an object
    /// ``TidemarkError/object`` says which one and which field.
    public static let coding = Code("coding")
    /// The process may not read or write the store's files, or the file system is read-only.
    public static let permissionDenied = Code("permissionDenied")
    /// The store is encrypted, and no key was given.
    public static let keyMissing = Code("keyMissing")
    /// The store is encrypted with another key than those that were given.
    public static let wrongKey = Code("wrongKey")
    /// A key was given for a store that is not encrypted.
    public static let notEncrypted = Code("notEncrypted")
    /// This build cannot encrypt or decrypt: it lacks the package's trait `Encryption`.
    public static let encryptionUnavailable = Code("encryptionUnavailable")
    /// A write was tried on a store that was opened for reading only.
    public static let readOnly = Code("readOnly")
    /// The store is closed; open it again to read or write.
    public static let closed = Code("closed")
    /// The store is suspended: its files are closed until `resume()` opens them again.
    public static let suspended = Code("suspended")
    /// Another task or process is at the same work, and the call did not wait for it.
    public static let busy = Code("busy")
    /// The call would exceed a limit of the store, such as the size of a batch.
    public static let limitExceeded = Code("limitExceeded")
    /// A server, a source or a peer did not answer in time.
    public static let timedOut = Code("timedOut")
    /// The source was not called, since it cannot be reached now.
    public static let offline = Code("offline")
    /// The task was cancelled before the call did its work, or while it waited.
    public static let cancelled = Code("cancelled")
  }

  /// The kind of failure, for a program to act on.
  public var code: Code
  /// The reason and the remedy in one line, for people.
  public var message: String
  /// The file with the fault, relative to the store where it lies inside; nil when no file is at
  /// fault.
  public var file: String?
  /// The offset in ``file``, in bytes, at which the fault lies; nil when unknown.
  public var offset: Int?
  /// The sequences of the entries that the error concerns; nil when it concerns none.
  public var sequences: ClosedRange<UInt64>?
  /// The index of the batch's change whose condition does not hold, for a `conflict`. It counts
  /// from 0 in the order in which the changes were added.
  public var operation: Int?
  /// The object of a collection that the error is about; nil when it is about none.
  public var object: ObjectPlace?
  /// The underlying error, such as that of a decoder or of the system; nil when there is none.
  public var cause: (any Error)?

  /// Creates an error, for code that reports a failure in the library's form.
  /// - Parameters:
  ///   - code: the kind of failure.
  ///   - message: what happened and what to do, in one line.
  ///   - file: the file that it is about.
  ///   - offset: the offset in the file, in bytes.
  ///   - sequences: the sequences that are concerned.
  ///   - operation: which change of a batch it is about, counted from 0.
  ///   - object: the object of a collection that it is about.
  ///   - cause: what caused it.
  public init(
    _ code: Code, _ message: String, file: String? = nil, offset: Int? = nil,
    sequences: ClosedRange<UInt64>? = nil, operation: Int? = nil, object: ObjectPlace? = nil,
    cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.file = file
    self.offset = offset
    self.sequences = sequences
    self.operation = operation
    self.object = object
    self.cause = cause
  }
}

/// An object of a collection, and the field in it, that a ``TidemarkError`` is about.
public struct ObjectPlace: Sendable, Hashable, CustomStringConvertible {
  /// The name of the object's collection.
  public var collection: String
  /// The object's id as text; nil where the id is unknown.
  public var id: String?
  /// The path to the field, as names and positions such as `tags.0`; empty for the whole object.
  public var path: String

  /// Creates the place of an object, or of a field in it, for an error.
  /// - Parameters:
  ///   - collection: the collection's name.
  ///   - id: the object's id as text.
  ///   - path: the names and positions that lead to a field.
  public init(collection: String, id: String? = nil, path: String = "") {
    self.collection = collection
    self.id = id
    self.path = path
  }

  /// The place as text: collection, object and field.
  public var description: String {
    "collection \(collection)" + (id.map { ", object \($0)" } ?? "")
      + (path.isEmpty ? "" : ", field \(path)")
  }
}

extension TidemarkError: CustomStringConvertible {
  /// The error as one line of text: the message with object, file and offset where they are known.
  public var description: String {
    var text = message
    if let object { text += " (\(object))" }
    if let file {
      text += " (\(file)"
      if let offset { text += ", offset \(offset)" }
      if let sequences {
        text += ", sequences \(sequences.lowerBound) to \(sequences.upperBound)"
      }
      text += ")"
    }
    return text
  }
}
