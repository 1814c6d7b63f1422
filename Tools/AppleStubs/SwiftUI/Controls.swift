// Views of SwiftUI that a list of objects is made of, for Tools/check-apple. Signatures are those
// of developer.apple.com/documentation/swiftui (each type by its name, modifiers at View); nothing
// runs.
public import Foundation

public struct LocalizedStringKey: Equatable, ExpressibleByStringInterpolation, Sendable {
  public init(stringLiteral value: String) {}
}

extension Text {
  nonisolated public init(_ key: LocalizedStringKey) { self.init("") }

  nonisolated public func strikethrough(_ isActive: Bool = true) -> Text { self }
}

public struct Label<Title: View, Icon: View>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension Label where Title == Text, Icon == Image {
  nonisolated public init(_ titleKey: LocalizedStringKey, systemImage name: String) {}
  nonisolated public init(_ title: some StringProtocol, systemImage name: String) {}
}

public struct Image: View, Sendable {
  public typealias Body = Never

  nonisolated public init(systemName: String) {}
  public var body: Never { fatalError("a stub") }
}

public struct ButtonRole: Equatable, Sendable {
  public static let destructive = ButtonRole()
  public static let cancel = ButtonRole()
}

public struct Button<Label: View>: View {
  public typealias Body = Never

  nonisolated public init(
    action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> Label
  ) {}
  public var body: Never { fatalError("a stub") }
}

extension Button where Label == Text {
  nonisolated public init(
    _ titleKey: LocalizedStringKey, action: @escaping @MainActor () -> Void
  ) {}
  nonisolated public init(
    _ titleKey: LocalizedStringKey, role: ButtonRole?, action: @escaping @MainActor () -> Void
  ) {}
  @_disfavoredOverload nonisolated public init(
    _ title: some StringProtocol, action: @escaping @MainActor () -> Void
  ) {}
}

public struct TextField<Label: View>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension TextField where Label == Text {
  nonisolated public init(_ titleKey: LocalizedStringKey, text: Binding<String>) {}
}

public struct Toggle<Label: View>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension Toggle where Label == Text {
  nonisolated public init(_ titleKey: LocalizedStringKey, isOn: Binding<Bool>) {}
}

public struct HStack<Content: View>: View {
  public typealias Body = Never

  nonisolated public init(spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
  public var body: Never { fatalError("a stub") }
}

public struct Spacer: View, Sendable {
  public typealias Body = Never

  nonisolated public init(minLength: CGFloat? = nil) {}
  public var body: Never { fatalError("a stub") }
}

public struct Form<Content: View>: View {
  public typealias Body = Never

  nonisolated public init(@ViewBuilder content: () -> Content) {}
  public var body: Never { fatalError("a stub") }
}

public struct ContentUnavailableView<Label: View, Description: View, Actions: View>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension ContentUnavailableView
where Label == SwiftUI.Label<Text, Image>, Description == Text?, Actions == EmptyView {
  nonisolated public init(
    _ title: LocalizedStringKey, systemImage name: String, description: Text? = nil
  ) {}
}

public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content> {}

extension ForEach: View where Content: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension ForEach where ID == Data.Element.ID, Content: View, Data.Element: Identifiable {
  nonisolated public init(
    _ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content
  ) {}
}

public struct List<SelectionValue: Hashable, Content: View>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension List where SelectionValue == Never {
  nonisolated public init(@ViewBuilder content: () -> Content) {}

  nonisolated public init<Data: RandomAccessCollection, RowContent: View>(
    _ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> RowContent
  ) where Content == ForEach<Data, Data.Element.ID, RowContent>, Data.Element: Identifiable {}
}

public struct NavigationStack<Data, Root: View>: View {
  public typealias Body = Never

  nonisolated public init(@ViewBuilder root: () -> Root) where Data == NavigationPath {}
  public var body: Never { fatalError("a stub") }
}

public struct NavigationPath: Sendable {}

public struct NavigationLink<Label: View, Destination: View>: View {
  public typealias Body = Never

  nonisolated public init(
    @ViewBuilder destination: () -> Destination, @ViewBuilder label: () -> Label
  ) {}
  public var body: Never { fatalError("a stub") }
}

public struct HorizontalEdge: Equatable, Sendable {
  public static let leading = HorizontalEdge()
  public static let trailing = HorizontalEdge()
}

extension View {
  nonisolated public func navigationTitle(_ titleKey: LocalizedStringKey) -> some View {
    EmptyView()
  }

  nonisolated public func searchable(text: Binding<String>) -> some View { EmptyView() }

  nonisolated public func swipeActions<T: View>(
    edge: HorizontalEdge = .trailing, allowsFullSwipe: Bool = true, @ViewBuilder content: () -> T
  ) -> some View {
    EmptyView()
  }

  nonisolated public func onSubmit(_ action: @escaping () -> Void) -> some View { EmptyView() }

  nonisolated public func toolbar<Content: View>(
    @ViewBuilder content: () -> Content
  ) -> some View {
    EmptyView()
  }

  nonisolated public func alert<A: View>(
    _ titleKey: LocalizedStringKey, isPresented: Binding<Bool>, @ViewBuilder actions: () -> A
  ) -> some View {
    EmptyView()
  }

  nonisolated public func animation<V: Equatable>(
    _ animation: Animation?, value: V
  ) -> some View {
    EmptyView()
  }
}
