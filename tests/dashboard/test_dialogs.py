"""A click on a dialog's button acts once for its opening, whichever request brings it."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.dashboard.conftest import PATIENCE


def app() -> None:
    import streamlit as st

    from dashboard.dialogs import close_dialog, dialog_button, draw_dialog, follow_dialog, open_dialog

    @st.dialog("Ask", on_dismiss=close_dialog)
    def ask(subject: str) -> None:
        st.write(f"about {subject}")
        if dialog_button("Do it", key="confirm", disabled=st.checkbox("Not yet", key="not_yet")):
            st.session_state["done"] = [*st.session_state.get("done", []), subject]
            if st.session_state.get("closes", True):
                close_dialog()
                st.rerun()

    draw_dialog()
    follow_dialog()
    st.button("One", key="one", on_click=open_dialog, args=(ask, "one"))
    st.button("Two", key="two", on_click=open_dialog, args=(ask, "two"))
    st.button("Other", key="other")


def asked(test: AppTest) -> list[str]:
    return [text.value for text in test.markdown if text.value.startswith("about")]


def test_a_dialog_stays_open_over_reruns_until_it_is_confirmed() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE).run()
    assert asked(test) == []
    test.button("one").click().run()
    test.button("other").click().run()
    assert asked(test) == ["about one"]
    test.button("confirm").click().run()
    assert test.session_state["done"] == ["one"]
    assert asked(test) == []
    assert not test.exception


def test_another_dialog_takes_the_place_of_an_open_one() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE).run()
    test.button("one").click().run()
    test.button("two").click().run()
    assert asked(test) == ["about two"]
    test.button("confirm").click().run()
    assert test.session_state["done"] == ["two"]


def test_a_dialog_that_stays_open_acts_again_for_another_click_only() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE)
    test.session_state["closes"] = False
    test.run()
    test.button("one").click().run()
    test.button("confirm").click().run()
    test.button("other").click().run()
    assert test.session_state["done"] == ["one"]
    test.button("confirm").click().run()
    assert test.session_state["done"] == ["one", "one"]


def test_a_second_click_does_not_act_for_the_button_that_took_the_place_of_the_first() -> None:
    test = AppTest.from_function(steps, default_timeout=PATIENCE).run()
    test.button("open").click().run()
    mark = test.session_state["dialog_open"].mark
    test.button("forward").click().run()
    assert [text.value for text in test.markdown] == ["step 2"]
    test.session_state["dialog_clicked"] = (mark, "Next")
    test.run()
    assert [text.value for text in test.markdown] == ["step 2"]
    test.button("forward").click().run()
    assert [text.value for text in test.markdown] == ["step 3"]


def steps() -> None:
    import streamlit as st

    from dashboard.dialogs import dialog_button, draw_dialog, follow_dialog, open_dialog

    @st.dialog("Steps")
    def dialog() -> None:
        step = st.session_state.setdefault("step", 1)
        st.write(f"step {step}")
        if step < 3 and dialog_button("Next" if step == 1 else "Review", key="forward"):
            st.session_state["step"] += 1
            st.rerun()

    draw_dialog()
    follow_dialog()
    st.button("Open", key="open", on_click=open_dialog, args=(dialog,))


def test_a_button_that_is_disabled_does_nothing() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE).run()
    test.button("one").click().run()
    test.checkbox("not_yet").check().run()
    assert test.button("confirm").disabled
    dialog = test.session_state["dialog_open"]
    test.session_state["dialog_clicked"] = (dialog.mark, "Do it")  # clicked just before it was disabled
    test.run()
    assert "done" not in test.session_state
    assert asked(test) == ["about one"]


def test_a_click_that_no_button_takes_is_forgotten() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE).run()
    test.button("one").click().run()
    test.session_state["dialog_clicked"] = ("of an opening before", "Do it")
    test.run()
    assert test.session_state["dialog_clicked"] is None
    assert "done" not in test.session_state


def test_a_click_that_comes_after_the_dialog_has_gone_does_nothing() -> None:
    import streamlit as st

    from dashboard import dialogs

    st.session_state.clear()
    dialogs.open_dialog(app)
    mark = st.session_state[dialogs._OPEN].mark
    dialogs.open_dialog(app)
    assert st.session_state[dialogs._OPEN].mark == mark, "a click that comes twice is one"
    dialogs.close_dialog()
    dialogs._click((mark, "Do it"))
    assert st.session_state[dialogs._CLICKED] is None
    dialogs.open_dialog(app)
    dialogs._click((mark, "Do it"))
    assert st.session_state[dialogs._CLICKED] is None
    st.session_state.clear()
