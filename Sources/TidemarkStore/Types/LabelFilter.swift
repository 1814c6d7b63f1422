package import TidemarkEngine

/// Which entries are wanted by their labels: those that meet all three conditions.
///
/// ```swift
/// var rows = try store.entries(labels: .all("inbox").any("2025", "2026").not("done"))
/// ```
public struct LabelFilter: Sendable, Hashable {
  /// Labels that an entry must carry, every one of them.
  public var all: [EntryLabel]
  /// Labels of which an entry must carry at least one; without any, there is no such condition.
  public var any: [EntryLabel]
  /// Labels that an entry must not carry.
  public var not: [EntryLabel]

  /// A filter; without parameters it lets everything through.
  public init(all: [EntryLabel] = [], any: [EntryLabel] = [], not: [EntryLabel] = []) {
    (self.all, self.any, self.not) = (all, any, not)
  }

  /// Lets everything through.
  public static let everything = LabelFilter()

  /// Entries that carry all of these.
  public static func all(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(all: labels) }

  /// Entries that carry at least one of these.
  public static func any(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(any: labels) }

  /// Entries that carry none of these.
  public static func not(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(not: labels) }

  /// Also demands all of these.
  public func all(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all + labels, any: any, not: not)
  }

  /// Demands at least one label of these and those given to `any` before.
  public func any(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all, any: any + labels, not: not)
  }

  /// Also demands none of these.
  public func not(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all, any: any, not: not + labels)
  }

  /// Whether it lets everything through.
  public var isEmpty: Bool { all.isEmpty && any.isEmpty && not.isEmpty }

  /// Whether all matching entries carry a label of the filter: an index by label finds them then.
  package var isPositive: Bool { !all.isEmpty || !any.isEmpty }

  /// The engine's form.
  package var query: LabelQuery {
    LabelQuery(all: all.map(\.bytes), any: any.map(\.bytes), not: not.map(\.bytes))
  }

  // The functions below take labels of text that is not a literal.

  /// Entries that carry all of these.
  @_disfavoredOverload
  public static func all<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: labels.map { EntryLabel($0) })
  }

  /// Entries that carry at least one of these.
  @_disfavoredOverload
  public static func any<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(any: labels.map { EntryLabel($0) })
  }

  /// Entries that carry none of these.
  @_disfavoredOverload
  public static func not<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(not: labels.map { EntryLabel($0) })
  }

  /// Also demands all of these.
  @_disfavoredOverload
  public func all<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all + labels.map { EntryLabel($0) }, any: any, not: not)
  }

  /// Demands at least one label of these and those given to `any` before.
  @_disfavoredOverload
  public func any<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all, any: any + labels.map { EntryLabel($0) }, not: not)
  }

  /// Also demands none of these.
  @_disfavoredOverload
  public func not<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all, any: any, not: not + labels.map { EntryLabel($0) })
  }
}
