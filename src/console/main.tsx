import { render } from 'preact';
import { App } from './app.js';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/text.css';
import './styles/panels.css';
import './styles/tables.css';
import './styles/forms.css';
import './styles/dialogs.css';
import './styles/events.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
