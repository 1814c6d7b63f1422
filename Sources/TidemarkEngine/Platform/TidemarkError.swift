/// An error: what went wrong, what it means, and what to do about it.
///
/// Keys and values do not stand in an error's text, since logs travel further than data should;
/// only the id of an object of a collection does, so that it can be found.
public struct TidemarkError: Error, Sendable {
  /// The kind of failure. Open: later versions may add kinds, so keep a default branch.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The kind's name.
    public let description: String

    package init(_ description: String) { self.description = description }

    /// There is no store at this path.
    public static let storeMissing = Code("storeMissing")
    /// Something is at this path that is no store.
    public static let notAStore = Code("notAStore")
    /// There is a store already where one was to be created.
    public static let storeExists = Code("storeExists")
    /// A later version of the library wrote this store.
    public static let formatTooNew = Code("formatTooNew")
    /// An earlier version of the library wrote this store, in a format that is read no more.
    public static let formatTooOld = Code("formatTooOld")
    /// Another process, or another open store of this one, writes to the store.
    public static let locked = Code("locked")
    /// Acknowledged data is damaged; ``TidemarkError/file`` and the rest say where.
    public static let damaged = Code("damaged")
    /// The key may have been written in a damaged part of the log that could not be read.
    public static let possiblyStale = Code("possiblyStale")
    /// History that far back is no longer kept.
    public static let historyGone = Code("historyGone")
    /// The cursor speaks of entries that this store no longer has.
    public static let historyDiverged = Code("historyDiverged")
    /// The disk is full: not committed; writes resume when there is space.
    public static let noSpace = Code("noSpace")
    /// A write or sync failed midway: committed or not, only reopening will tell.
    public static let unknownOutcome = Code("unknownOutcome")
    /// An earlier write ended with an unknown outcome; reopen, or suspend and resume, the store to
    /// write again.
    public static let poisoned = Code("poisoned")
    /// A key, value, label or option is out of bounds.
    public static let invalidArgument = Code("invalidArgument")
    /// A key was not in the state that a write asked for; ``TidemarkError/operation`` says which
    /// change of the batch had asked.
    public static let conflict = Code("conflict")
    /// Another object has a value that a unique index allows once only.
    public static let notUnique = Code("notUnique")
    /// No index of the collection serves the query, and it was not asked to scan.
    public static let indexMissing = Code("indexMissing")
    /// The system refused or failed.
    public static let inputOutput = Code("inputOutput")
    /// A value cannot be made of bytes, or bytes of a value; of an object,
    /// ``TidemarkError/object`` says where.
    public static let coding = Code("coding")
    /// No permission to read or write the store's files, or a read-only file system.
    public static let permissionDenied = Code("permissionDenied")
    /// The store is encrypted, and no key was given.
    public static let keyMissing = Code("keyMissing")
    /// The store is encrypted with another key than those that were given.
    public static let wrongKey = Code("wrongKey")
    /// A key was given for a store that is not encrypted.
    public static let notEncrypted = Code("notEncrypted")
    /// This build cannot encrypt or decrypt: it lacks the package's trait `Encryption`.
    public static let encryptionUnavailable = Code("encryptionUnavailable")
    /// The store was opened for reading only.
    public static let readOnly = Code("readOnly")
    /// The store is closed.
    public static let closed = Code("closed")
    /// The store is suspended: it has let go of its files until it is resumed.
    public static let suspended = Code("suspended")
    /// Somebody else is at the same work, and the caller did not want to wait.
    public static let busy = Code("busy")
    /// A bound of the engine would be exceeded.
    public static let limitExceeded = Code("limitExceeded")
    /// Somebody who was asked has not answered in time.
    public static let timedOut = Code("timedOut")
    /// Nobody was asked, since there is no network.
    public static let offline = Code("offline")
    /// The task was cancelled before anything was done, or while it waited.
    public static let cancelled = Code("cancelled")
  }

  /// The kind of failure.
  public var code: Code
  /// The reason and what to do, in one line.
  public var message: String
  /// The file that it is about, relative to the store where it lies inside.
  public var file: String?
  /// The offset in the file, in bytes.
  public var offset: Int?
  /// The sequences that are concerned.
  public var sequences: ClosedRange<UInt64>?
  /// The change of the batch whose condition does not hold, for a `conflict`; counted from 0 in the
  /// order in which they were added.
  public var operation: Int?
  /// The object of a collection that it is about.
  public var object: ObjectPlace?
  /// The error that caused it.
  public var cause: (any Error)?

  /// Creates an error.
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

/// An object of a collection, and a place in it.
public struct ObjectPlace: Sendable, Hashable, CustomStringConvertible {
  /// The collection's name.
  public var collection: String
  /// The object's id as text; nil where none is known.
  public var id: String?
  /// The names and positions that lead to a field, such as `tags.0`; empty for the whole object.
  public var path: String

  /// A place.
  /// - Parameters:
  ///   - collection: the collection's name.
  ///   - id: the object's id as text.
  ///   - path: the names and positions that lead to a field.
  public init(collection: String, id: String? = nil, path: String = "") {
    self.collection = collection
    self.id = id
    self.path = path
  }

  public var description: String {
    "collection \(collection)" + (id.map { ", object \($0)" } ?? "")
      + (path.isEmpty ? "" : ", field \(path)")
  }
}

extension TidemarkError: CustomStringConvertible {
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
